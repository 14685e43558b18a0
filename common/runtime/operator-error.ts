/**
 * A failure that the operator can fix: an invalid variable, a port in use, an unreadable file. Programs print its
 * message without a stack and exit with a non-zero code. `cause` is for the log.
 */
export class OperatorError extends Error {
  override readonly name: string = 'OperatorError';
}
