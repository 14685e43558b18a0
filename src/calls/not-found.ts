import type { ConnectError } from '@connectrpc/connect';
import { failure } from '../../common/contract/errors.ts';

/** NOT_FOUND: the account does not have `what`, such as `code`. */
export function notFound(what: string): ConnectError {
  return failure('NOT_FOUND', `There is no such ${what} on this account.`);
}
