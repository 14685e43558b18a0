import { setTimeout as sleep } from 'node:timers/promises';
import { create, type MessageShape } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import {
  type RenderImageRequestSchema,
  RenderImageResponseSchema,
} from '../../../proto/gen/signpost/images/v1/images_pb.ts';
import type { CoreClients } from '../../core/clients.ts';
import { image } from './image.ts';

test('images are drawn in turns by key, however `Bearer` is written', async () => {
  const order: string[] = [];
  const renderImage = async ({ id }: MessageShape<typeof RenderImageRequestSchema>) => {
    order.push(id);
    await sleep(1);
    return create(RenderImageResponseSchema);
  };
  const [endpoint] = image({ images: { renderImage } } as unknown as CoreClients);
  const draw = (id: string, authorization: string) =>
    endpoint?.handle({ id, query: { size: '4096' }, headers: { authorization }, body: undefined, options: {} });
  const many = Array.from({ length: 50 }, (_, n) => draw('many', `bearer ${' '.repeat(n)}sk_live_1`));
  await Promise.all([...many, draw('one', 'Bearer sk_live_2')]);
  // Two are drawn at a time, and one more of the same key may have been next.
  expect(order.indexOf('one')).toBeLessThanOrEqual(3);
});
