import { create } from '@bufbuild/protobuf';
import { expect, test, vi } from 'vitest';
import { GetTargetResponseSchema } from '../../../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { targets, versionAfterLostAnswer } from './target-changes.ts';

const [ME, OTHER] = ['me@harbour.example', 'other@harbour.example'];

test.each([
  ['has not changed', 4, OTHER, 4],
  ['was changed once, by the same person', 5, ME, 5],
  ['was changed once, by another person', 5, OTHER, 4],
  ['was changed several times, last by the same person', 6, ME, 4],
])(
  'a target that %s since a change without an answer is expected in the right version',
  async (_, version, author, expected) => {
    vi.spyOn(targets, 'getTarget').mockResolvedValue(create(GetTargetResponseSchema, { target: { version, author } }));
    expect(await versionAfterLostAnswer('qr_1', 4, ME)).toBe(expected);
  },
);
