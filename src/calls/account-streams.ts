import { failure } from '../../common/contract/errors.ts';
import { limitAtOnce } from '../../common/queues/limit-at-once.ts';

/** Forwards a stream of an account while it has a place. `accountId`: UUID. */
export type AccountStreams = <Item>(accountId: string, stream: AsyncIterable<Item>) => AsyncGenerator<Item>;

/**
 * Gives each account places for `most` streams at a time in this process. Further ones fail with UNAVAILABLE. `items`:
 * what they are, in the error.
 */
export function accountStreams(most: number, items: string): AccountStreams {
  const open = limitAtOnce(most);
  return async function* (accountId, stream) {
    const close = open(accountId);
    if (!close) {
      const sentence = `Too many ${items} of this account are open. Close some, or try again.`;
      throw failure('UNAVAILABLE', sentence, { limit: String(most) });
    }
    try {
      yield* stream;
    } finally {
      close();
    }
  };
}
