import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { COUNTRIES } from '../../../common/contract/country-codes.ts';
import { NIL_UUID } from '../../../common/contract/ids.ts';
import type { Queryable } from '../../../common/postgres/sql.ts';
import type { ConditionsSchema } from '../../../proto/gen/signpost/targets/v1/policy_pb.ts';
import { SetTargetRequestSchema, TargetRowInputSchema } from '../../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { validator } from '../../calls/validator.ts';
import { readRows } from './read-rows.ts';

const noHosts = { query: async () => ({ rows: [] }) } as unknown as Queryable;
const outcome = { kind: { case: 'targetUrl', value: 'https://example.com/' } } as const;

const policyWith = (when: MessageInitShape<typeof ConditionsSchema>, rules = 1) => ({
  rules: Array.from({ length: rules }, () => ({ when, outcome })),
});
const row = (policy: ReturnType<typeof policyWith>) =>
  create(TargetRowInputSchema, { code: { case: 'id', value: 'qr_1' }, policy });

test('the event loop runs other tasks after some values, however few rows they are in', async () => {
  let turns = 0;
  const again = () => {
    turns += 1;
    immediate = setImmediate(again);
  };
  let immediate = setImmediate(again);
  const full = row(policyWith({ countries: [...COUNTRIES].slice(0, 200) }, 10));
  const read = await readRows(noHosts, () => false, NIL_UUID, Array(8).fill(full));
  clearImmediate(immediate);
  expect(read.map(({ problem }) => problem)).toEqual(Array(8).fill(undefined));
  expect(turns).toBeGreaterThanOrEqual(8);
});

test.each([
  [{ countries: Array<string>(1_000).fill('') }, 'countries: must contain no more than 250 items.'],
  [{ countries: Array<string>(10).fill('') }, 'countries: repeated value must contain unique items.'],
  [{ countries: ['DE', '', 'x'] }, 'countries[1]: must be a country such as DE, in capitals, or unknown.'],
  [{ devices: Array.from({ length: 1_000 }, (_, n) => `x${n}`) }, 'devices: must contain no more than 5 items.'],
])('a policy is validated up to its first violation: %#', async (when, sentence) => {
  const policy = policyWith(when);
  const [read] = await readRows(noHosts, () => false, NIL_UUID, [row(policy)]);
  expect(read?.problem).toBe(`policy.rules[0].when.${sentence}`);
  const { violations } = validator.validate(SetTargetRequestSchema, create(SetTargetRequestSchema, { policy }));
  expect(violations).toHaveLength(1);
});
