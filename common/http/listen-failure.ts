import { OperatorError } from '../runtime/operator-error.ts';

/** Codes of hosts that no server can listen on: unknown names, and addresses of other machines. */
const HOST = /^(EADDRNOTAVAIL|EINVAL|ENOTFOUND|EAI_\w+)$/;

/** The error for an operator whose `LISTEN_HOST`, or whose port, given in `variable`, can't be listened on. */
export function listenFailure(variable: string, port: number, error: unknown): OperatorError {
  const { code, message } = error as NodeJS.ErrnoException;
  // grpc-js puts the code into the message only.
  const reason = code ?? /\bE[A-Z_]{3,}/.exec(message)?.[0] ?? message;
  if (HOST.test(reason)) return new OperatorError(`LISTEN_HOST is not an address of this machine (${reason}).`);
  const problem = reason === 'EADDRINUSE' ? 'it is in use' : reason;
  return new OperatorError(`${variable} ${port} can't be listened on: ${problem}.`, { cause: error });
}
