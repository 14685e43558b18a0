import { availableParallelism } from 'node:os';
import { isMessage } from '@bufbuild/protobuf';
import type { Interceptor } from '@connectrpc/connect';
import { isSmallImage } from '../../common/contract/small-image.ts';
import { fairQueue } from '../../common/queues/fair-queue.ts';
import { BatchesService } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { RenderImageRequestSchema } from '../../proto/gen/signpost/images/v1/images_pb.ts';
import { callerKey, fairnessKey } from '../access/caller.ts';
import { eachInTurn } from './each-in-turn.ts';

/**
 * At most half the processors draw large images. With two processors and 64 concurrent images of 4,096 px, the 99th
 * percentile of other calls was 14 to 34 ms with one image at a time, 34 to 51 ms with two and 72 ms with all 64 (10 ms
 * without images).
 */
const LARGE_AT_ONCE = Math.max(1, availableParallelism() >> 1);

/** Small images that are looked up at the same time share statements: four at a time took a fifth more CPU than 16. */
const SMALL_AT_ONCE = 16 * LARGE_AT_ONCE;

/**
 * The maximum number of waiting calls of each kind: they take a few kilobytes each, and small ones together a second,
 * or up to 16 s with the longest texts.
 */
const MAX_WAITING = 2_000;

/**
 * Limits concurrent image calls, so that hundreds at once delay neither the event loop nor the connections to Postgres
 * for other calls. A chunk of an exported batch counts as a large image. The queues are fair by account. It must run
 * after admission: with unverified credentials as the key, one client with made-up keys counted as any number of
 * callers and filled the queue for everyone.
 */
export function limitImages(): Interceptor {
  const large = fairQueue({ concurrency: LARGE_AT_ONCE, maxWaiting: MAX_WAITING, items: 'images' });
  const small = fairQueue({ concurrency: SMALL_AT_ONCE, maxWaiting: MAX_WAITING, items: 'images' });
  return (next) => async (request) => {
    const { contextValues, signal } = request;
    const caller = () => fairnessKey(contextValues.get(callerKey));
    if (request.method === BatchesService.method.exportBatch) {
      const response = await next(request);
      if (!response.stream) return response;
      const message = eachInTurn(response.message, (work) => large(caller(), signal, work));
      return { ...response, message };
    }
    if (request.stream || !isMessage(request.message, RenderImageRequestSchema)) return next(request);
    const inTurn = isSmallImage(request.message) ? small : large;
    return inTurn(caller(), signal, () => next(request));
  };
}
