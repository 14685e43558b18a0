import { Code, ConnectError } from '@connectrpc/connect';
import type { Command } from 'commander';
import { readFailure, TEMPORARILY_UNAVAILABLE } from '../common/contract/errors.ts';
import { mayHaveChanged } from './core-transport.ts';
import { givenIds, withOptionName } from './option-names.ts';

/** Whether the same call may succeed a moment later, for example once a core has been restarted. */
export function isTemporary(error: unknown): boolean {
  const temporary = [Code.Unavailable, Code.DeadlineExceeded];
  return error instanceof ConnectError && (temporary.includes(error.code) || isLost(error));
}

/** Whether the connection was closed after the request was sent, or at least a part of it. */
function isLost({ rawMessage, cause }: ConnectError): boolean {
  // Of TLS, before anything was sent; its code is ECONNRESET, too.
  if (rawMessage.startsWith('Client network socket disconnected')) return false;
  if (/\b(ECONNRESET|EPIPE)\b|socket hang up/.test(rawMessage)) return true;
  // In the middle of a response the message is only "aborted".
  return cause instanceof Error && 'code' in cause && ['ECONNRESET', 'EPIPE'].includes(String(cause.code));
}

/** What to do after a call without a response. */
function withoutResponse(sentence: string, error: ConnectError): string {
  if (!mayHaveChanged(error)) return `${sentence}; try again.`;
  return `${sentence}: the change may have been made; check before you repeat it.`;
}

/**
 * Describes a failed call of the core to the person at the command line: with the option that was wrong instead of the
 * field or header of the RPC. `command`: the one that was executed.
 */
export function rejectionSentence(error: unknown, command: Command): string {
  if (!(error instanceof ConnectError)) return error instanceof Error ? error.message : String(error);
  // Errors of the core itself have details.
  if (error.details.length === 0) {
    if (error.code === Code.DeadlineExceeded) return withoutResponse(error.rawMessage, error);
    if (isLost(error))
      return `${withoutResponse('The connection was closed before a response arrived', error)} If every command fails like this, check CORE_HOST, CORE_PORT and CORE_CA.`;
    const isUnreachable = error.code === Code.Unavailable || error.rawMessage.includes('ECONNREFUSED');
    return isUnreachable
      ? 'The core does not respond: is it running, and do CORE_HOST and CORE_PORT name it?'
      : noCore(error);
  }
  const { reason } = readFailure(error);
  const sentence = error.rawMessage;
  // Without a token, a call has a certificate.
  if (reason === 'INVALID_SERVICE_TOKEN' && sentence.includes(' is needed'))
    return 'The core rejects the certificate in CORE_CERT: is it valid, and of the CA in the core’s TLS_CLIENT_CA?';
  if (reason === 'INVALID_SERVICE_TOKEN' || reason === 'UNAUTHENTICATED')
    return 'The core rejects the token: set SERVICE_TOKEN to the core’s, or DATA_DIR to the folder of its local run.';
  if (sentence === TEMPORARILY_UNAVAILABLE) return 'Postgres is unavailable to the core, which logs why; try again.';
  if (reason === 'NOT_FOUND') {
    if (sentence.includes('signpost-account')) return '--account: there is no open account with this id.';
    // Of `target rollback` and `target at`.
    if (sentence.includes(' no version ')) return about(['--to'], sentence);
    if (sentence.includes('at this time')) return about(['--at'], sentence);
    return about(givenIds(command), sentence);
  }
  if (reason === 'NO_TARGET') return about(isTargetUrlGiven(command) ? ['--target-url'] : givenIds(command), sentence);
  return withOptionName(command, sentence);
}

/** The sentence if something other than a core responded, or TLS failed. */
function noCore({ rawMessage, code }: ConnectError): string {
  // OpenSSL's message is a line of its log, and that of a gateway's response is empty.
  const received = rawMessage.replace(/^.*:SSL routines:[^:]*:([^:]*):.*$/s, '$1') || Code[code];
  return `No core answers: do CORE_HOST and CORE_PORT name its Connect port, and does CORE_CA match its certificate? (${received})`;
}

function isTargetUrlGiven(command: Command): boolean {
  return command.getOptionValueSource('targetUrl') === 'cli';
}

function about(options: readonly string[], sentence: string): string {
  if (options.length === 0) return sentence;
  return `${options.join(' or ')}: ${sentence.charAt(0).toLowerCase()}${sentence.slice(1)}`;
}
