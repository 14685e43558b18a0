import { availableParallelism } from 'node:os';
import type { Interceptor } from '@connectrpc/connect';
import { turns } from '../../common/runtime/fair-queue.ts';
import { ImagesService } from '../../proto/gen/signpost/images/v1/images_pb.ts';
import { callerKey, fairnessKey } from '../access/caller.ts';

/**
 * Half the processors may be busy with images. On two, beside 64 images of 4,096 px at once, the slowest hundredth of
 * other calls took 14 to 34 ms with one in hand, 34 to 51 ms with two and 72 ms with all 64 (10 ms where nothing else
 * went on).
 */
const AT_ONCE = Math.max(1, availableParallelism() >> 1);

/** Each is the few kilobytes of a call. As many as are drawn in some seconds. */
const MOST_WAITING = 2_000;

/**
 * Lets few calls for images in at a time, so that hundreds at once fill neither the event loop nor the connections to
 * Postgres before other calls. Accounts take turns. Comes after a call is judged: by what callers only claim to be, one
 * client with made-up keys was as many callers as it liked and filled the queue for everybody.
 */
export function fewImagesAtOnce(): Interceptor {
  const inTurn = turns({ atOnce: AT_ONCE, mostWaiting: MOST_WAITING, things: 'images' });
  return (next) => async (request) => {
    if (request.method !== ImagesService.method.renderImage) return next(request);
    return inTurn(fairnessKey(request.contextValues.get(callerKey)), request.signal, () => next(request));
  };
}
