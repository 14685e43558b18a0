import type { IncomingMessage } from 'node:http';
import { MAX_ROWS_BYTES, messageTooLarge } from '../../common/contract/limits.ts';
import { BodyMemory } from '../../common/queues/body-memory.ts';
import type { Session } from './session.ts';

/** The maximum size of a call's message, in bytes: what the core reads of a batch, and the frame around it. */
export const MAX_BODY_BYTES = MAX_ROWS_BYTES + 1024;

/** Bodies of up to this size, as nearly all have, are received whatever others are in memory. */
const SMALL_BYTES = 64 * 1024;

const MIB = 1024 * 1024;

/**
 * Four of the largest bodies of an account, and as many of others. A call waits for one of them to arrive and be
 * answered.
 */
const MEMORY = { bodyBytes: 66 * MIB, accountBodyBytes: 33 * MIB, waiting: 256, accountWaiting: 64, waitMs: 60_000 };

/** Receives all of a call's body; its memory is counted until `held` is disposed of. `signal` aborts with the call. */
type ReceiveBody = (
  request: IncomingMessage,
  session: Session,
  held: DisposableStack,
  signal: AbortSignal,
) => Promise<Buffer>;

/**
 * Receives the bodies of calls, which are forwarded once they are complete: the core gives a message 30 s to arrive,
 * while the time of its call runs too, and a batch needs longer over a slow uplink. Large ones share a limited memory.
 */
export function receiveBodies(): ReceiveBody {
  const memory = new BodyMemory(MEMORY);
  return async (request, { account }, held, signal) => {
    // Without an announced length it is chunked.
    const bytes = Number(request.headers['content-length'] ?? MAX_BODY_BYTES);
    // Chunks are copied: as objects, many small ones take hundreds of times their size.
    let body = Buffer.allocUnsafeSlow(Math.min(bytes, SMALL_BYTES));
    let length = 0;
    // Otherwise the connection would be closed before it has the answer.
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      if (length + chunk.length > bytes) throw messageTooLarge(MAX_ROWS_BYTES);
      if (length + chunk.length > body.length) {
        held.defer(await memory.take(account, bytes, signal));
        const first = body.subarray(0, length);
        body = Buffer.allocUnsafeSlow(bytes);
        first.copy(body);
      }
      length += chunk.copy(body, length);
    }
    return body.subarray(0, length);
  };
}
