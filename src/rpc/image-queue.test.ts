import { availableParallelism } from 'node:os';
import { createClient, createRouterTransport } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { ImageFormat, ImagesService } from '../../proto/gen/signpost/images/v1/images_pb.ts';
import { limitImages } from './image-queue.ts';

/** A client of a service that answers when the test calls `end`, and the sizes of the calls that have begun. */
function slowImages() {
  const begun: (number | undefined)[] = [];
  const { promise, resolve: end } = Promise.withResolvers<void>();
  const transport = createRouterTransport(
    (router) =>
      void router.service(ImagesService, {
        async renderImage({ size }) {
          begun.push(size);
          await promise;
          return {};
        },
      }),
    { router: { interceptors: [limitImages()] } },
  );
  return { client: createClient(ImagesService, transport), begun, end };
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
