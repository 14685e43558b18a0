import { availableParallelism } from 'node:os';
import type { Interceptor } from '@connectrpc/connect';
import { fairQueue } from '../../common/runtime/fair-queue.ts';
import { ImagesService } from '../../proto/gen/signpost/images/v1/images_pb.ts';
import { callerKey, fairnessKey } from '../access/caller.ts';

/**
 * At most half the processors draw images. With two processors and 64 concurrent images of 4,096 px, the 99th
 * percentile of other calls was 14 to 34 ms with one image at a time, 34 to 51 ms with two and 72 ms with all 64 (10 ms
 * without images).
 */
const AT_ONCE = Math.max(1, availableParallelism() >> 1);

/** Each takes the few kilobytes of a call; as many as are drawn in a few seconds. */
const MAX_WAITING = 2_000;

/**
 * Limits concurrent image calls, so that hundreds at once delay neither the event loop nor the connections to Postgres
 * for other calls. The queue is fair by account. It must run after admission: with unverified credentials as the key,
 * one client with made-up keys counted as any number of callers and filled the queue for everyone.
 */
export function limitImages(): Interceptor {
  const inTurn = fairQueue({ concurrency: AT_ONCE, maxWaiting: MAX_WAITING, items: 'images' });
  return (next) => async (request) => {
    if (request.method !== ImagesService.method.renderImage) return next(request);
    return inTurn(fairnessKey(request.contextValues.get(callerKey)), request.signal, () => next(request));
  };
}
