import { availableParallelism } from 'node:os';
import { createClient, createRouterTransport, type Interceptor } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { BatchesService } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { ImageFormat, ImagesService } from '../../proto/gen/signpost/images/v1/images_pb.ts';
import { type Account, callerKey } from '../access/caller.ts';
import { limitImages } from './image-queue.ts';

const asAccount: Interceptor = (next) => (request) => {
  const account = { id: request.header.get('account') ?? '' } as Account;
  request.contextValues.set(callerKey, { kind: 'service', account, actor: 'a test' });
  return next(request);
};

/**
 * Clients of services that answer when the test calls `end`, and the sizes of what has begun, 0 for chunks of batches.
 */
function slowImages() {
  const begun: (number | undefined)[] = [];
  const { promise, resolve: end } = Promise.withResolvers<void>();
  const transport = createRouterTransport(
    (router) => {
      router.service(ImagesService, {
        async renderImage({ size }) {
          begun.push(size);
          await promise;
          return {};
        },
      });
      router.service(BatchesService, {
        async *exportBatch() {
          for (let chunk = 0; chunk < 3; chunk++) {
            begun.push(0);
            await promise;
            yield {};
          }
        },
      });
    },
    { router: { interceptors: [asAccount, limitImages()] } },
  );
  const [client, batches] = [createClient(ImagesService, transport), createClient(BatchesService, transport)];
  return { client, batches, begun, end };
}

test('large images, however many, do not keep small ones waiting, and few of either run at a time', async () => {
  const { client, begun, end } = slowImages();
  const large = Array.from({ length: 100 }, () => client.renderImage({ id: 'x', size: 4_096 }));
  const half = Math.max(1, availableParallelism() >> 1);
  const small = Array.from({ length: 32 * half }, () => client.renderImage({ id: 'x', size: 1_024 }));
  const vector = client.renderImage({ id: 'x', size: 4_095, format: ImageFormat.SVG });
  const running = () => [4_096, 1_024, 4_095].map((size) => begun.filter((each) => each === size).length);
  await expect.poll(running).toEqual([half, 16 * half, 0]);
  // No more begin.
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(running()).toEqual([half, 16 * half, 0]);
  end();
  await Promise.all([...large, ...small, vector]);
  expect(begun).toHaveLength(large.length + small.length + 1);
});

test('however many batches an account exports, the next large image of another account is drawn first', async () => {
  const { client, batches, begun, end } = slowImages();
  const exported = Array.from({ length: 50 }, () =>
    Array.fromAsync(batches.exportBatch({}, { headers: { account: 'a' } })),
  );
  const half = Math.max(1, availableParallelism() >> 1);
  await expect.poll(() => begun).toEqual(Array(half).fill(0));
  const large = client.renderImage({ id: 'x', size: 4_096 }, { headers: { account: 'b' } });
  // By then it waits.
  await new Promise(setImmediate);
  end();
  await large;
  expect(begun.indexOf(4_096)).toBeLessThanOrEqual(2 * half);
  const chunks = await Promise.all(exported);
  expect(chunks.map(({ length }) => length)).toEqual(Array(50).fill(3));
});
