import { expect, test } from 'vitest';
import { encodeId } from '../../common/contract/ids.ts';
import { CodesService, UpdateOutcome } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { codesServices } from './codes-services.fixture.ts';

const codes = codesServices();
const count = (names: readonly string[], name: string) => names.filter((each) => each === name).length;

// 1,000 codes with the largest policies took 86 MB, and were read twice.
test('a change of many codes reads the whole codes once, 250 at a time', async () => {
  const of = await codes.newTenant();
  const { rows } = await codes.pool().query<{ id: string }>(
    `insert into codes (account_id, id, type, short_code, target_url, policy)
     select $1, gen_random_uuid(), 'dynamic', 'many' || n, 'https://example.com/', '{"passQuery": true}'
     from generate_series(1, 501) n returning id`,
    [of.id],
  );
  const ids = rows.map(({ id }) => encodeId('qr', id));
  const statements = await codes.statementsOf(async () => {
    const { results } = await codes.call(CodesService.method.updateCodes, { ids, paused: true }, { of });
    expect(results.map(({ outcome }) => outcome)).toEqual(ids.map(() => UpdateOutcome.CHANGED));
  });
  expect(count(statements, 'codes_find_locked')).toBe(1);
  expect(count(statements, 'codes_find_all')).toBe(3);
  const { rows: events } = await codes.pool().query<{ id: string; policy: object }>(
    `select value->>'id' as id, value->'policy' as policy
     from (select convert_from(value, 'UTF8')::jsonb as value from outbox where key = any($1)) events`,
    [ids],
  );
  expect(events.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
  expect(events.every(({ policy }) => policy !== null)).toBe(true);
});
