import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { readFailure } from '../../common/contract/errors.ts';
import { decodeId, encodeId, newUuid } from '../../common/contract/ids.ts';
import { AccountsService } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { CodesService, UpdateOutcome } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { TaxonomyService } from '../../proto/gen/signpost/taxonomy/v1/taxonomy_pb.ts';
import { insertStaticCodes } from '../harness/insert-static-codes.ts';
import { type Account, contract, type One, type Page } from './client.ts';
import { internal } from './internal.ts';

const { CHANGED, UNCHANGED, NOT_FOUND, REFUSED } = UpdateOutcome;
const EVENTUALLY = { interval: 50 };

const api = contract();
let database: pg.Client;
beforeAll(async () => {
  database = new pg.Client({ connectionString: api.signpost.databaseUrl });
  await database.connect();
});
afterAll(() => database.end());

type Request = Parameters<ReturnType<typeof codesOf>['updateCodes']>[0];

const codesOf = ({ id }: Account) => internal(api.signpost, CodesService, id);

async function outcomes(account: Account, request: Request): Promise<UpdateOutcome[]> {
  return (await codesOf(account).updateCodes(request)).results.map(({ outcome }) => outcome);
}

const read = async (account: Account, id: string) => (await account.call<One>('GET', `/qr-codes/${id}`)).body.data;

/** What each event of the codes says, in order. */
async function eventsOf(ids: readonly string[]) {
  const { rows } = await database.query<{ type: string; data: CodeJson & { changed?: string[] } }>(
    `select headers->>'ce_type' as type, convert_from(value, 'utf8')::json as data from outbox
     where topic = 'signpost.events.v1' and key = any($1) order by id`,
    [ids],
  );
  return rows.map(({ type, data }) => ({ id: data.id, type, version: data.version, changed: data.changed, data }));
}

const scan = async ({ short_code }: CodeJson) =>
  (await fetch(`${api.signpost.gateways[0]?.url}/r/${short_code}`, { redirect: 'manual' })).status;

async function auditOf(account: Account) {
  const { entries } = await internal(api.signpost, AccountsService, account.id).listAuditEntries({});
  return entries.filter(({ action }) => action === 'CodesService/UpdateCodes').map(({ subject }) => subject);
}

test('UpdateCodes changes each code as UpdateCode does: fields, version, event, route and audit entry', async () => {
  const account = await api.account();
  const one = await account.create({ tags: ['old', 'kept'] });
  const two = await account.create({ folder: 'Berlin', tags: ['New'] });
  expect(await Promise.all([scan(one), scan(two)])).toEqual([302, 302]);
  const change = { paused: true, folder: 'berlin', addTags: ['new'], removeTags: ['OLD', 'unknown'] };
  expect(await outcomes(account, { ids: [two.id, one.id], ...change })).toEqual([CHANGED, CHANGED]);

  const [first, second] = [await read(account, one.id), await read(account, two.id)];
  expect(first).toMatchObject({ paused: true, folder: two.folder, tags: ['kept', 'New'], version: 2 });
  expect(second).toMatchObject({ paused: true, folder: two.folder, tags: ['New'], version: 2 });
  const events = (await eventsOf([one.id, two.id])).filter(({ type }) => type === 'qr.updated');
  expect(events.map(({ id, changed }) => [id, changed]).sort()).toEqual([
    [one.id, ['paused', 'folder', 'tags']],
    [two.id, ['paused']],
  ]);
  // Scans are counted later.
  const { scan_count, ...atOnce } = first;
  expect(events.find(({ id }) => id === one.id)?.data).toMatchObject(atOnce);
  await expect.poll(() => Promise.all([scan(one), scan(two)]), EVENTUALLY).toEqual([200, 200]);
  expect((await auditOf(account)).sort()).toEqual([one.id, two.id]);

  expect(await outcomes(account, { ids: [one.id, two.id], ...change })).toEqual([UNCHANGED, UNCHANGED]);
  expect(await outcomes(account, { ids: [one.id], folder: ' None ' })).toEqual([CHANGED]);
  expect(await read(account, one.id)).toMatchObject({ folder: null, version: 3, paused: true });
  expect(await eventsOf([one.id, two.id])).toHaveLength(5);
  expect(await auditOf(account)).toHaveLength(3);
});

test('BatchGetCodes returns those of the codes that the account has, each once', async () => {
  const account = await api.account();
  const one = await account.create({ tags: ['kept'], folder: 'Berlin' });
  const deleted = await account.create({});
  await account.call('DELETE', `/qr-codes/${deleted.id}`);
  const other = await (await api.account()).create({});
  const unknown = encodeId('qr', newUuid());
  const codes = codesOf(account);
  const ids = [unknown, one.id, deleted.id, other.id, one.id, 'qr_nonsense'];
  expect((await codes.batchGetCodes({ ids })).codes).toEqual([(await codes.getCode({ id: one.id })).code]);
  expect((await codes.batchGetCodes({ ids: [unknown] })).codes).toEqual([]);
  for (const bad of [[], Array<string>(101).fill(one.id)])
    await expect(codes.batchGetCodes({ ids: bad })).rejects.toThrow('ids');
});

test('UpdateCodes answers for each id in the order of the request, and leaves other accounts’ codes alone', async () => {
  const [account, other] = [await api.account(), await api.account()];
  const [live, paused, deleted] = [await account.create(), await account.create(), await account.create()];
  const foreign = await other.create();
  await outcomes(account, { ids: [paused.id], paused: true });
  await account.call('DELETE', `/qr-codes/${deleted.id}`);
  const ids = ['x', '', paused.id, foreign.id, live.id, deleted.id, live.id, encodeId('qr', newUuid())];
  const { results } = await codesOf(account).updateCodes({ ids, paused: true });
  expect(results.map(({ id }) => id)).toEqual(ids);
  expect(results.map(({ outcome }) => outcome)).toEqual([
    ...[NOT_FOUND, NOT_FOUND, UNCHANGED, NOT_FOUND, CHANGED, NOT_FOUND, CHANGED, NOT_FOUND],
  ]);
  expect(await read(account, live.id)).toMatchObject({ version: 2 });
  expect(await read(other, foreign.id)).toMatchObject({ version: 1, paused: false });
});

test('UpdateCodes deletes and restores, as far as the plan’s limit allows', async () => {
  const account = await api.account({ overrides: { codeLimit: 3n } });
  const codes = [await account.create(), await account.create(), await account.create()];
  const ids = codes.map(({ id }) => id);
  const { code: fixed } = await codesOf(account).createStaticCode({ content: { case: 'payload', value: 'x' } });
  const all = [...ids, fixed?.id ?? ''];
  expect(await outcomes(account, { ids: all, deleted: true })).toEqual([CHANGED, CHANGED, CHANGED, CHANGED]);
  expect(await outcomes(account, { ids: all, deleted: true })).toEqual(all.map(() => NOT_FOUND));
  const total = async () => (await account.call<Page>('GET', '/qr-codes')).body.total;
  expect(await total()).toBe(0);
  await expect.poll(() => Promise.all(codes.map(scan)), EVENTUALLY).toEqual([410, 410, 410]);

  const kept = await account.create();
  const { results } = await codesOf(account).updateCodes({ ids: [...all, kept.id], deleted: false });
  expect(results.map(({ outcome }) => outcome)).toEqual([CHANGED, CHANGED, REFUSED, CHANGED, UNCHANGED]);
  expect(results[2]).toMatchObject({
    reason: 'QR_LIMIT_REACHED',
    message: 'This account has 3 of its 3 QR codes; delete some or change the plan.',
  });
  expect(await total()).toBe(4);
  expect((await account.call('POST', '/qr-codes', { json: { target_url: 'https://example.com' } })).body.code).toBe(
    'qr_limit_reached',
  );
  await expect.poll(() => Promise.all(codes.map(scan)), EVENTUALLY).toEqual([302, 302, 410]);
  const [first = ''] = ids;
  expect((await eventsOf([first])).map(({ type, version, changed }) => [type, version, changed])).toEqual([
    ['qr.created', 1, undefined],
    ['qr.archived', 2, undefined],
    ['qr.updated', 3, ['deleted']],
  ]);
});

test('UpdateCodes restores dynamic codes when an account has as many others as it can have', async () => {
  const account = await api.account();
  const { id } = await account.create();
  const { code: fixed } = await codesOf(account).createStaticCode({ content: { case: 'payload', value: 'x' } });
  const ids = [fixed?.id ?? '', id];
  expect(await outcomes(account, { ids, deleted: true })).toEqual([CHANGED, CHANGED]);
  await insertStaticCodes(database, account.id, 10_000);
  const { results } = await codesOf(account).updateCodes({ ids, deleted: false });
  expect(results).toMatchObject([{ outcome: REFUSED, reason: 'LIMIT_REACHED' }, { outcome: CHANGED }]);
});

test('UpdateCodes refuses a code that would have more than 20 tags, and changes nothing of it', async () => {
  const account = await api.account();
  const full = await account.create({ tags: Array.from({ length: 20 }, (_, n) => `t${n}`) });
  const empty = await account.create();
  const { results } = await codesOf(account).updateCodes({ ids: [full.id, empty.id], paused: true, addTags: ['x'] });
  expect(results).toMatchObject([
    { outcome: REFUSED, reason: 'INVALID_FIELD', message: 'tags: a code can have at most 20 tags.' },
    { outcome: CHANGED, reason: '', message: '' },
  ]);
  expect(await read(account, full.id)).toEqual(full);
  expect(await outcomes(account, { ids: [full.id], addTags: ['x'], removeTags: ['t1'] })).toEqual([CHANGED]);
  expect((await read(account, full.id)).tags).toHaveLength(20);
});

test('UpdateCodes creates no folder and no tag if no code is changed', async () => {
  const account = await api.account();
  const full = await account.create({ tags: Array.from({ length: 20 }, (_, n) => `t${n}`) });
  const unknown = encodeId('qr', newUuid());
  expect(await outcomes(account, { ids: [unknown, 'x'], folder: 'New', addTags: ['new'] })).toEqual([
    ...[NOT_FOUND, NOT_FOUND],
  ]);
  expect(await outcomes(account, { ids: [full.id, unknown], addTags: ['new'] })).toEqual([REFUSED, NOT_FOUND]);
  const labels = internal(api.signpost, TaxonomyService, account.id);
  expect((await labels.listFolders({})).folders).toEqual([]);
  expect((await labels.listTags({})).tags.map(({ name }) => name)).not.toContain('new');
  expect(await read(account, full.id)).toEqual(full);
});

test('UpdateCodes rejects a bad request with one sentence and changes nothing', async () => {
  const account = await api.account();
  const { id } = await account.create({ tags: ['a'] });
  const requests: [Request, string, string?][] = [
    [{ ids: [id] }, 'NO_FIELDS'],
    [{ ids: [], paused: true }, 'INVALID_FIELD'],
    [{ ids: Array.from({ length: 1_001 }, () => id), paused: true }, 'INVALID_FIELD'],
    [{ ids: [id], deleted: true, paused: true }, 'INVALID_FIELD'],
    [{ ids: [id], deleted: false, addTags: ['b'] }, 'INVALID_FIELD'],
    [{ ids: [id], paused: true, folder: '' }, 'INVALID_FIELD', 'folder: '],
    [{ ids: [id], paused: true, addTags: ['b\0'] }, 'INVALID_FIELD', 'add_tags: '],
    [
      { ids: [id], paused: true, addTags: Array.from({ length: 21 }, (_, n) => `t${n}`) },
      'INVALID_FIELD',
      'add_tags: ',
    ],
    [{ ids: [id], paused: true, addTags: ['b', 'A'], removeTags: ['a'] }, 'INVALID_FIELD'],
  ];
  for (const [request, reason, start = ''] of requests) {
    const error = await codesOf(account).updateCodes(request).catch(readFailure);
    expect(error).toMatchObject({ reason, message: expect.stringMatching(`^${start}`) });
  }
  expect(await read(account, id)).toMatchObject({ version: 1, paused: false, tags: ['a'] });
  expect((await internal(api.signpost, TaxonomyService, account.id).listTags({})).tags).toHaveLength(1);
});

test('concurrent calls for the same 1,000 codes leave each with one version, event and audit entry per change', async () => {
  const account = await api.account({ overrides: { codeLimit: 2_000n } });
  const rows = Array.from({ length: 1_000 }, () => ({ target_url: 'https://example.com' }));
  await account.call('POST', '/batches', { json: { rows } });
  const { rows: created } = await database.query<{ id: string; uuid: string }>(
    'select id as uuid from codes where account_id = $1',
    [decodeId('acct', account.id)],
  );
  const ids = created.map(({ uuid }) => encodeId('qr', uuid));
  expect(ids).toHaveLength(1_000);
  const calls = [
    { paused: true },
    { folder: 'Berlin', addTags: ['a', 'b'] },
    { deleted: true },
    { addTags: ['c'], removeTags: ['a'] },
    { deleted: false },
    { paused: false },
  ];
  const results = await Promise.all(
    calls.map((call, n) => outcomes(account, { ids: n % 2 === 0 ? ids : ids.toReversed(), ...call })),
  );
  const changes = results.flat().filter((outcome) => outcome === CHANGED).length;
  expect(changes).toBeGreaterThanOrEqual(1_000);
  const { rows: versions } = await database.query<{ version: string; uuid: string }>(
    'select id as uuid, version from codes where id = any($1)',
    [created.map(({ uuid }) => uuid)],
  );
  const events = await eventsOf(ids);
  expect(events).toHaveLength(1_000 + changes);
  const byCode = Map.groupBy(events, ({ id }) => id);
  for (const { uuid, version } of versions) {
    const seen = byCode.get(encodeId('qr', uuid))?.map((event) => event.version);
    expect(seen).toEqual(Array.from({ length: Number(version) }, (_, n) => n + 1));
  }
  const { rows: audited } = await database.query(
    `select count(*)::int as count from audit_entries where action = 'CodesService/UpdateCodes' and subject = any($1)`,
    [ids],
  );
  expect(audited).toEqual([{ count: changes }]);
});
