import type { IncomingMessage } from 'node:http';
import type { ConnectError } from '@connectrpc/connect';
import { failure } from '../../common/contract/errors.ts';
import { MAX_ROWS_BYTES } from '../../common/contract/limits.ts';
import { personOf, type Session } from './session.ts';

/** The maximum size of a call's message, in bytes: what the core reads of a batch, and the frame around it. */
export const MAX_BODY_BYTES = MAX_ROWS_BYTES + 1024;

/** Bodies of up to this size, as nearly all have, are received whatever others are in memory. */
const SMALL_BYTES = 64 * 1024;

/** The most bytes of larger bodies in memory, in all and of one person, over all sessions. */
const MAX_BYTES = 64 * 1024 * 1024;
const MAX_PERSON_BYTES = MAX_BYTES / 2;

/** The body of a call. It is counted as in memory until it is disposed of. */
export interface CallBody extends Disposable {
  /** Receives all of it. Fails if it is larger than a message may be, or if too many large ones are in memory. */
  receive(request: IncomingMessage): Promise<Buffer>;
}

/**
 * Returns a function that creates the body of a call. Calls are forwarded once their bodies are complete: the core gives a
 * message 30 s to arrive, while the time of its call runs too, and a batch needs longer over a slow uplink.
 */
export function callBodies(): (session: Session) => CallBody {
  /** The bytes of large bodies, by person. */
  const held = new Map<string, number>();
  let heldByAll = 0;
  const hold = (person: string, bytes: number) => {
    heldByAll += bytes;
    const rest = (held.get(person) ?? 0) + bytes;
    if (rest > 0) held.set(person, rest);
    else held.delete(person);
  };

  return (session) => {
    const person = personOf(session);
    let counted = 0;
    const release = () => {
      hold(person, -counted);
      counted = 0;
    };
    return {
      async receive(request) {
        const chunks: Buffer[] = [];
        let length = 0;
        // Otherwise the connection would be closed before it has the answer.
        for await (const chunk of request.iterator({ destroyOnReturn: false })) {
          chunks.push(chunk);
          length += chunk.length;
          if (length > MAX_BODY_BYTES) throw tooLarge();
          if (length <= SMALL_BYTES) continue;
          hold(person, length - counted);
          counted = length;
          if (heldByAll <= MAX_BYTES && (held.get(person) ?? 0) <= MAX_PERSON_BYTES) continue;
          // At once, so that no other one fails because of this one.
          release();
          throw tooBusy();
        }
        return Buffer.concat(chunks, length);
      },
      [Symbol.dispose]: release,
    };
  };
}

export function tooLarge(): ConnectError {
  return failure('MESSAGE_TOO_LARGE', 'The message must have at most 8 MiB.');
}

function tooBusy(): ConnectError {
  return failure('UNAVAILABLE', 'Too many large messages are being received at the moment. Try again shortly.');
}
