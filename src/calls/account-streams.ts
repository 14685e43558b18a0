import { failure } from '../../common/contract/errors.ts';

/** Forwards a stream of an account while it has a place. `accountId`: UUID. */
export type AccountStreams = <Item>(accountId: string, stream: AsyncIterable<Item>) => AsyncGenerator<Item>;

/**
 * Gives each account places for `most` streams at a time in this process. Further ones fail with UNAVAILABLE. `items`:
 * what they are, in the error.
 */
export function accountStreams(most: number, items: string): AccountStreams {
  const open = new Map<string, number>();
  return async function* (accountId, stream) {
    const others = open.get(accountId) ?? 0;
    if (others >= most) {
      throw failure('UNAVAILABLE', `Too many ${items} of this account are open. Close some, or try again.`);
    }
    open.set(accountId, others + 1);
    try {
      yield* stream;
    } finally {
      const left = (open.get(accountId) ?? 0) - 1;
      if (left > 0) open.set(accountId, left);
      else open.delete(accountId);
    }
  };
}
