/** A failure that the person at the terminal can act on: printed as its sentence, without a stack. */
export class Sentence extends Error {
  override readonly name = 'Sentence';
}
