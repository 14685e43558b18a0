/**
 * A failure that the person who runs the program can mend: a wrong variable, a port that is taken, a file that can't be
 * read. Programs print its message without a stack and exit with a non-zero code. `cause` is for the log.
 */
export class OperatorError extends Error {
  override readonly name: string = 'OperatorError';
}
