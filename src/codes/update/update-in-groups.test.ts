import { fromBinary } from '@bufbuild/protobuf';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { beforeEach, expect, test } from 'vitest';
import { readFailure } from '../../../common/contract/errors.ts';
import { decodeId } from '../../../common/contract/ids.ts';
import { type Code, CodesService } from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { RouteSchema } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import { type CallOptions, codesServices, type Tenant } from '../codes-services.fixture.ts';

const { pool, newTenant, call, statementsOf } = codesServices();
const { createCode, getCode, updateCode } = CodesService.method;

let tenant: Tenant;
beforeEach(async () => {
  tenant = await newTenant();
});

async function newCode(of = tenant): Promise<Code> {
  const { code } = await call(createCode, { targetUrl: 'https://example.com/1' }, { of });
  if (!code) throw new Error('no code');
  return code;
}

type Fields = Partial<Pick<Code, 'targetUrl' | 'name' | 'paused'>>;
const PATHS = { targetUrl: 'target_url', name: 'name', paused: 'paused' } as const;

/** Changes these fields. */
const change = ({ id }: Code, fields: Fields, options: Partial<CallOptions> = {}) => {
  const paths = (Object.keys(fields) as (keyof Fields)[]).map((field) => PATHS[field]);
  return call(updateCode, { id, updateMask: { paths }, ...fields }, { of: tenant, ...options });
};

const outcome = (changing: ReturnType<typeof change>) =>
  changing.then(
    () => 'changed',
    (error: unknown) => readFailure(error).reason,
  );

const stored = async ({ id }: Code, of = tenant) => (await call(getCode, { id }, { of })).code;

/** The events and the routes of a code, as in the outbox. */
async function announced({ id, shortCode }: Code) {
  const { rows } = await pool().query<{ key: string; value: Buffer }>(
    'select key, value from outbox where key in ($1, $2) order by id',
    [id, `code:${shortCode}`],
  );
  return {
    events: rows.filter(({ key }) => key === id).map(({ value }) => JSON.parse(value.toString())),
    routes: rows.filter(({ key }) => key !== id).map(({ value }) => fromBinary(RouteSchema, value)),
  };
}

async function versionsOf({ id }: Code) {
  const { rows } = await pool().query(
    'select version, target_url, policy, author, note from target_versions where code_id = $1 order by version',
    [decodeId('qr', id)],
  );
  return rows;
}

test('a change reads the code and writes it in one statement each', async () => {
  const code = await newCode();
  const statements = await statementsOf(() =>
    change(code, { name: 'New', paused: true, targetUrl: 'https://a.example/' }),
  );
  expect(statements).toEqual(['codes_find_group', 'codes_update_group']);
});

test('concurrent changes of several codes over two cores take effect, each with its event and route', async () => {
  const other = await newTenant();
  const codes = await Promise.all(
    Array.from({ length: 40 }, (_, nth) => [nth, nth % 2 === 0 ? tenant : other] as const).map(async ([nth, of]) => ({
      code: await newCode(of),
      of,
      core: nth % 2,
      name: `Table ${nth}`,
    })),
  );
  const answers = await Promise.all(codes.map(({ code, name, of, core }) => change(code, { name }, { of, core })));
  for (const [nth, { code, of, name }] of codes.entries()) {
    const answer = answers[nth];
    expect(answer?.code).toMatchObject({ id: code.id, name, version: 2n });
    expect(await stored(code, of)).toEqual(answer?.code);
    const { events, routes } = await announced(code);
    expect(events.map(({ name, changed }) => ({ name, changed }))).toEqual([
      { name: null, changed: undefined },
      { name, changed: ['name'] },
    ]);
    expect(routes[1]).toEqual(answer?.route);
  }
});

test('changes of one code by many callers all take effect, in the order of its versions', async () => {
  const code = await newCode();
  const names = Array.from({ length: 30 }, (_, nth) => `Name ${nth}`);
  const answers = await Promise.all(names.map((name, nth) => change(code, { name }, { core: nth % 2 })));
  const versions = answers.map((answer) => Number(answer.code?.version)).toSorted((one, other) => one - other);
  expect(versions).toEqual(names.map((_, nth) => nth + 2));
  const last = answers.find((answer) => answer.code?.version === 31n)?.code;
  expect(await stored(code)).toEqual(last);
  const { events, routes } = await announced(code);
  expect(events.map(({ version }) => version)).toEqual([1, ...names.map((_, nth) => nth + 2)]);
  expect(routes.map(({ version }) => Number(version))).toEqual([1, ...names.map((_, nth) => nth + 2)]);
  expect(new Set(events.slice(1).map(({ name }) => name))).toEqual(new Set(names));
});

test('a target becomes a version of its own, after version 1, and removes the policy', async () => {
  const code = await newCode();
  await change(code, { name: 'Before' });
  expect(await versionsOf(code)).toEqual([]);
  await pool().query(`update codes set policy = '{"rules": []}' where id = $1`, [decodeId('qr', code.id)]);
  await change(code, { targetUrl: 'https://example.com/2', paused: true });
  const version = { policy: null, author: 'api', note: '' };
  expect(await versionsOf(code)).toEqual([
    { version: 1, target_url: 'https://example.com/1', policy: { rules: [] }, author: '', note: '' },
    { ...version, version: 2, target_url: 'https://example.com/2' },
  ]);
  await change(code, { targetUrl: 'https://example.com/3' });
  expect(await versionsOf(code)).toHaveLength(3);
  const { events } = await announced(code);
  expect(events.map(({ changed }) => changed?.toSorted())).toEqual([
    undefined,
    ['name'],
    ['paused', 'policy', 'target_url'],
    ['target_url'],
  ]);
});

test('values that a code has already change nothing', async () => {
  const code = await newCode();
  const { code: same } = await change(code, { targetUrl: 'https://example.com/1', paused: false });
  expect(same).toEqual(code);
  expect((await announced(code)).events).toHaveLength(1);
});

test('the time of a change is the same in the row, the event and the answer, and never goes back', async () => {
  const code = await newCode();
  const future = new Date(Date.now() + 3_600_000);
  await pool().query('update codes set updated_at = $2 where id = $1', [decodeId('qr', code.id), future]);
  const { code: after } = await change(code, { name: 'Later' });
  expect(after?.updatedAt && timestampDate(after.updatedAt)).toEqual(future);
  expect((await stored(code))?.updatedAt).toEqual(after?.updatedAt);
  expect((await announced(code)).events[1]).toMatchObject({ updated_at: future.toISOString() });
});

test('a group does not wait for a code that another transaction holds, whose change is seen', async () => {
  const [held, free] = [await newCode(), await newCode()];
  const client = await pool(1).connect();
  try {
    await client.query('begin');
    await client.query('update codes set name = $2, version = version + 1 where id = $1', [
      decodeId('qr', held.id),
      'Held',
    ]);
    const first = change(free, { paused: true });
    const [waiting, beside] = [change(held, { paused: true }), change(free, { name: 'Beside' })];
    await Promise.all([first, beside]);
    await client.query('commit');
    expect((await waiting).code).toMatchObject({ name: 'Held', paused: true, version: 3n });
    expect(await stored(held)).toMatchObject({ name: 'Held', paused: true, version: 3n });
  } finally {
    client.release();
  }
});

test('a code that a deleted folder has just left stays outside', async () => {
  const { code } = await call(createCode, { targetUrl: 'https://example.com/1', folder: 'Summer' }, { of: tenant });
  if (!code) throw new Error('no code');
  const client = await pool(1).connect();
  try {
    await client.query('begin');
    await client.query('update codes set folder_id = null where id = $1', [decodeId('qr', code.id)]);
    const changing = change(code, { paused: true });
    await client.query('delete from folders where account_id = $1', [tenant.id]);
    await client.query('commit');
    await changing;
  } finally {
    client.release();
  }
  await change(code, { name: 'New' });
  expect(await stored(code)).toMatchObject({ name: 'New', paused: true, version: 3n });
  expect((await stored(code))?.folder).toBeUndefined();
});

test('a statement that one call makes fail fails that call alone', async () => {
  await pool().query(`alter table codes add constraint refused check (name <> 'refused')`);
  const codes = await Promise.all([newCode(), newCode(), newCode()]);
  const outcomes = codes.map((code, nth) => outcome(change(code, { name: nth === 1 ? 'refused' : 'New' })));
  expect(await Promise.all(outcomes)).toEqual(['changed', 'INTERNAL', 'changed']);
  expect(await stored(codes[1] as Code)).toEqual(codes[1]);
  await pool().query('alter table codes drop constraint refused');
});

test('a call that is late or whose caller has left changes nothing, and the others of its group are changed', async () => {
  const codes = await Promise.all(Array.from({ length: 5 }, () => newCode()));
  const until = (ms: number) => ({ headers: { 'signpost-commit-by': String(Date.now() + ms) } });
  const options = [{}, until(-1_000), until(10_000), until(60_000), { signal: AbortSignal.abort() }];
  const [first, late, soon, later, left] = await Promise.all(
    codes.map((code, nth) => outcome(change(code, { name: 'New' }, options[nth]))),
  );
  expect([first, late, soon, later]).toEqual(['changed', 'TOO_LATE', 'changed', 'changed']);
  expect(left).not.toBe('changed');
  const names = await Promise.all(codes.map(async (code) => (await stored(code))?.name));
  expect(names).toEqual(['New', undefined, 'New', 'New', undefined]);
});

test('codes of other accounts and deleted ones are not found', async () => {
  const code = await newCode();
  expect(await outcome(change(code, { name: 'Mine' }, { of: await newTenant() }))).toBe('NOT_FOUND');
  await call(CodesService.method.deleteCode, { id: code.id }, { of: tenant });
  expect(await outcome(change(code, { name: 'Late' }))).toBe('NOT_FOUND');
});
