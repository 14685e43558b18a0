import { timestampDate } from '@bufbuild/protobuf/wkt';
import { beforeEach, expect, test, vi } from 'vitest';
import { readFailure } from '../../../common/contract/errors.ts';
import { decodeId, encodeId } from '../../../common/contract/ids.ts';
import { CodesService } from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { type CallOptions, codesServices, type Tenant } from '../codes-services.fixture.ts';

/** Short codes that are generated next. */
const nextShortCodes = vi.hoisted((): string[] => []);
vi.mock(import('./short-code.ts'), async (original) => {
  const { newShortCode, ...others } = await original();
  return { ...others, newShortCode: () => nextShortCodes.shift() ?? newShortCode() };
});

const TARGET = 'https://example.com/menu';

const { pool, newTenant, call, statementsOf } = codesServices();

let tenant: Tenant;
beforeEach(async () => {
  tenant = await newTenant();
});

/** Creates a code, by default of the test's account. */
const createCode = ({ name, ...options }: Partial<CallOptions> & { readonly name?: string } = {}) =>
  call(
    CodesService.method.createCode,
    { targetUrl: TARGET, ...(name === undefined ? {} : { name }) },
    { of: tenant, ...options },
  );

const outcome = (call: ReturnType<typeof createCode>) =>
  call.then(
    () => 'created',
    (error: unknown) => readFailure(error).reason,
  );

async function stored({ id }: Tenant) {
  const { rows } = await pool().query(
    `select (select count(*)::integer from codes where account_id = $1) as codes, live::integer, listed::integer,
       (select count(*)::integer from outbox where headers->>'ce_source' = '/accounts/' || $2) as events,
       (select count(*)::integer from outbox o join codes c on o.key = 'code:' || c.short_code
        where c.account_id = $1) as routes
     from code_counts where account_id = $1`,
    [id, encodeId('acct', id)],
  );
  return rows[0];
}
const all = (count: number) => ({ codes: count, live: count, listed: count, events: count, routes: count });

test('a create is one statement, with an idempotency key too', async () => {
  expect(await statementsOf(() => createCode())).toEqual(['codes_create_group']);
  const headers = { 'idempotency-key': 'zero' };
  expect(await statementsOf(() => createCode({ headers }))).toEqual(['codes_create_group']);
});

test('concurrent creates of several accounts over two cores are exact, each with its event and route', async () => {
  const tenants = await Promise.all([7, 20, null].map(newTenant));
  const calls = Array.from({ length: 90 }, (_, nth) => ({ of: tenants[nth % 3] as Tenant, core: nth % 2 }));
  const outcomes = await Promise.all(
    calls.map(async (call) => ({ of: call.of, result: await outcome(createCode(call)) })),
  );
  for (const each of tenants) {
    const count = Math.min(each.codeLimit ?? 30, 30);
    const own = outcomes.filter(({ of }) => of === each).map(({ result }) => result);
    expect(own.toSorted()).toEqual([
      ...Array<string>(30 - count).fill('QR_LIMIT_REACHED'),
      ...Array<string>(count).fill('created'),
    ]);
    expect(await stored(each)).toEqual(all(count));
  }
});

test('the time of creation is the same in the row, the event and the answer', async () => {
  const { code } = await createCode();
  const { rows } = await pool().query(
    `select c.created_at, c.updated_at, convert_from(o.value, 'UTF8')::json as event
     from codes c join outbox o on o.key = $2 where c.id = $1`,
    [decodeId('qr', code?.id ?? ''), code?.id],
  );
  const [row] = rows;
  const createdAt = code?.createdAt && timestampDate(code.createdAt);
  expect(new Date(row?.created_at)).toEqual(createdAt);
  expect(new Date(row?.updated_at)).toEqual(createdAt);
  expect(row?.event).toMatchObject({ created_at: createdAt?.toISOString(), updated_at: createdAt?.toISOString() });
});

test('a group does not wait for the counter of an account that another transaction holds', async () => {
  const held = await newTenant();
  const client = await pool(1).connect();
  try {
    await client.query('begin');
    await client.query('select from code_counts where account_id = $1 for update', [held.id]);
    const first = createCode();
    const [skipped, beside] = [createCode({ of: held }), createCode()];
    await Promise.all([first, beside]);
    expect(await stored(tenant)).toEqual(all(2));
    await client.query('commit');
    await skipped;
    expect(await stored(held)).toEqual(all(1));
  } finally {
    client.release();
  }
});

test('a statement that one call makes fail fails that call alone', async () => {
  await pool().query(`alter table codes add constraint refused check (name <> 'refused')`);
  const calls = ['one', 'two', 'refused', 'three'].map((name) => outcome(createCode({ name })));
  expect(await Promise.all(calls)).toEqual(['created', 'created', 'INTERNAL', 'created']);
  expect(await stored(tenant)).toEqual(all(3));
  await pool().query('alter table codes drop constraint refused');
});

test('a short code that exists is replaced by another one, and no other call notices', async () => {
  const taken = (await createCode()).code?.shortCode ?? '';
  nextShortCodes.push('aaaaaaa', taken, 'bbbbbbb');
  const created = await Promise.all([createCode(), createCode(), createCode()]);
  expect(new Set([taken, ...created.map(({ code }) => code?.shortCode)]).size).toBe(4);
  // Two calls of one group choose the same one.
  nextShortCodes.push('ccccccc', 'ddddddd', 'ddddddd');
  const again = await Promise.all([createCode(), createCode(), createCode()]);
  expect(new Set(again.map(({ code }) => code?.shortCode)).size).toBe(3);
  expect(await stored(tenant)).toEqual(all(7));
});

test('a call that is late or whose caller has left creates nothing, and the others of its group are created', async () => {
  const until = (ms: number) => ({ 'signpost-commit-by': String(Date.now() + ms) });
  const calls = [
    createCode(),
    createCode({ headers: until(-1_000) }),
    createCode({ headers: until(10_000) }),
    createCode({ headers: until(60_000) }),
    createCode({ signal: AbortSignal.abort() }),
  ];
  const [first, late, soon, later, left] = await Promise.all(calls.map(outcome));
  expect([first, late, soon, later]).toEqual(['created', 'TOO_LATE', 'created', 'created']);
  expect(left).not.toBe('created');
  expect(await stored(tenant)).toEqual(all(3));
});

test('Postgres ends a group when the first of its callers stops waiting', async () => {
  const client = await pool(1).connect();
  try {
    // New codes refer to it.
    await client.query('begin');
    await client.query('select from accounts where id = $1 for update', [tenant.id]);
    const until = String(Date.now() + 2_000);
    const calls = [createCode({ headers: { 'signpost-commit-by': until } }), createCode({ of: await newTenant() })];
    const [limited] = calls;
    expect(await outcome(limited as (typeof calls)[0])).toBe('UNAVAILABLE');
    expect(Date.now()).toBeGreaterThanOrEqual(Number(until) - 100);
    await client.query('commit');
    await outcome(calls[1] as (typeof calls)[0]);
    expect(await stored(tenant)).toEqual(all(0));
  } finally {
    client.release();
  }
});

test('calls with one idempotency key create one code, in the same group and in others', async () => {
  const headers = { 'idempotency-key': 'one' };
  const answers = await Promise.allSettled(
    Array.from({ length: 20 }, (_, nth) => createCode({ headers, core: nth % 2 })),
  );
  const created = answers.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  expect(created.filter(({ replayed }) => replayed === 'false')).toHaveLength(1);
  for (const each of answers) {
    if (each.status === 'rejected') expect(readFailure(each.reason).reason).toBe('IDEMPOTENCY_KEY_IN_FLIGHT');
  }
  const again = await createCode({ headers });
  expect(again.replayed).toBe('true');
  expect(new Set([again, ...created].map(({ code }) => code?.id)).size).toBe(1);
  expect(await outcome(createCode({ headers, name: 'other' }))).toBe('IDEMPOTENCY_KEY_REUSED');
  expect(await stored(tenant)).toEqual(all(1));
});

test('calls with one idempotency key that wait for the same group create one code', async () => {
  const headers = { 'idempotency-key': 'three' };
  const other = await newTenant();
  const calls = [
    createCode(),
    createCode({ headers }),
    createCode({ headers }),
    createCode({ headers, name: 'other' }),
    createCode({ of: other, headers }),
  ];
  const [, first, ...others] = await Promise.allSettled(calls);
  expect(first).toMatchObject({ status: 'fulfilled', value: { replayed: 'false' } });
  expect(await stored(tenant)).toEqual(all(2));
  const outcomes = others.map((each) =>
    each.status === 'fulfilled' ? each.value.replayed : readFailure(each.reason).reason,
  );
  expect(['true', 'IDEMPOTENCY_KEY_IN_FLIGHT']).toContain(outcomes[0]);
  expect(['IDEMPOTENCY_KEY_REUSED', 'IDEMPOTENCY_KEY_IN_FLIGHT']).toContain(outcomes[1]);
  expect(outcomes[2]).toBe('false');
});

test('a key whose create is rejected replays the rejection, and one that has expired creates again', async () => {
  const full = await newTenant(0);
  const headers = { 'idempotency-key': 'two' };
  expect(await outcome(createCode({ of: full, headers }))).toBe('QR_LIMIT_REACHED');
  expect(await outcome(createCode({ of: { ...full, codeLimit: 9 }, headers }))).toBe('QR_LIMIT_REACHED');
  await createCode({ headers });
  await pool().query(`update idempotency set created_at = now() - interval '25 hours' where account_id = $1`, [
    tenant.id,
  ]);
  expect((await createCode({ headers })).replayed).toBe('false');
  expect(await stored(tenant)).toEqual(all(2));
});
