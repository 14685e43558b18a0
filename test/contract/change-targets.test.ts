import { randomUUID } from 'node:crypto';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { Code } from '@connectrpc/connect';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { decodeId } from '../../common/contract/ids.ts';
import { policyOf } from '../../common/targets/policy.fixture.ts';
import { policyToJson } from '../../common/targets/policy-to-json.ts';
import { AccountsService } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { BatchesService } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import {
  type TargetChange,
  TargetChangeStatus,
  TargetRowStatus,
  TargetsService,
} from '../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { type Account, contract, TARGET } from './client.ts';
import { internal } from './internal.ts';

const EVENTUALLY = { interval: 50 };
const NEW = 'https://example.com/new';
const { CHANGED, UNCHANGED, FAILED } = TargetRowStatus;

const api = contract({ gateways: 2, cores: 2 });
let database: pg.Client;
let account: Account;
beforeAll(async () => {
  database = new pg.Client({ connectionString: api.signpost.databaseUrl });
  await database.connect();
  account = await api.account();
});
afterAll(() => database.end());

const targets = (of: Account = account) => internal(api.signpost, TargetsService, of.id);

const GONE = policyOf({ rules: [{ name: 'end', then: { page: 'gone' } }] });

function present<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('the response lacks its field');
  return value;
}

/** A row that names its code by id. */
const byId = (id: string, targetUrl = NEW) => ({ code: { case: 'id', value: id }, targetUrl }) as const;

type Rows = Parameters<ReturnType<typeof targets>['changeTargets']>[0]['rows'];

/** Sends a change, waits until it is completed, and returns it with its rows. */
async function changed(rows: Rows, { of = account, dryRun = false, note = '' } = {}) {
  const { change } = await targets(of).changeTargets({ rows: present(rows), dryRun, note });
  const { id } = present(change);
  for await (const { change: seen } of targets(of).watchTargetChange({ id })) {
    if (seen?.status === TargetChangeStatus.COMPLETED) return targets(of).getTargetChange({ id });
  }
  throw new Error('the watch ended before the change was completed');
}

/** The events of these codes, in order, by what they say has changed and which version they carry. */
async function updates(...ids: string[]): Promise<unknown[]> {
  const { rows } = await database.query(
    `select convert_from(value, 'utf8')::json as data from outbox
     where topic = 'signpost.events.v1' and key = any($1) and headers ->> 'ce_type' = 'qr.updated' order by id`,
    [ids],
  );
  return rows.map(({ data }) => [data.id, data.changed, data.target_url]);
}

/** What a scan at each gateway leads to. */
async function scanned(shortCode: string): Promise<(string | number)[]> {
  return Promise.all(
    api.signpost.gateways.map(async ({ url }) => {
      const response = await fetch(`${url}/r/${shortCode}`, { redirect: 'manual' });
      return response.headers.get('location') ?? response.status;
    }),
  );
}

const counts = ({ counts: of }: { counts?: TargetChange['counts'] }) => {
  const { total, pending, changed: changedRows, unchanged, failed } = present(of);
  return { total, pending, changed: changedRows, unchanged, failed };
};

describe('rows', () => {
  test('each row names its code by id, short code or external reference, and takes effect at all gateways', async () => {
    const [one, two] = [await account.create(), await account.create()];
    const batches = internal(api.signpost, BatchesService, account.id);
    const rows = ['T-1', 'T-2', 'T-2'].map((externalRef) => ({ targetUrl: TARGET, externalRef }));
    const { batch } = await batches.createBatch({ rows });
    const { rows: printed } = await batches.getBatch({ id: present(batch).id });
    const [three] = printed;
    const { change, rows: results } = await changed(
      [
        byId(one.id),
        { code: { case: 'shortCode', value: two.short_code }, policy: GONE },
        { code: { case: 'externalRef', value: 'T-1' }, targetUrl: ` ${NEW} `, policy: GONE },
        { code: { case: 'externalRef', value: 'T-2' }, targetUrl: NEW },
      ],
      { note: 'The season is over.' },
    );
    expect(change).toMatchObject({ dryRun: false, note: 'The season is over.', status: TargetChangeStatus.COMPLETED });
    expect(counts(present(change))).toEqual({ total: 4, pending: 0, changed: 3, unchanged: 0, failed: 1 });
    expect(timestampMs(present(change?.completedAt))).toBeGreaterThanOrEqual(timestampMs(present(change?.createdAt)));
    expect(
      results.map(({ position, code, status, codeId, version }) => [position, code.value, status, codeId, version]),
    ).toEqual([
      [0, one.id, CHANGED, one.id, 2],
      [1, two.short_code, CHANGED, two.id, 2],
      [2, 'T-1', CHANGED, present(three?.codeId), 2],
      [3, 'T-2', FAILED, '', 0],
    ]);
    expect(results[3]?.reason).toContain('several codes were created with this reference');
    await expect.poll(() => scanned(one.short_code), EVENTUALLY).toEqual([NEW, NEW]);
    await expect.poll(() => scanned(two.short_code), EVENTUALLY).toEqual([410, 410]);
    await expect.poll(() => scanned(present(three?.shortCode)), EVENTUALLY).toEqual([410, 410]);
    expect((await updates(one.id, two.id, present(three?.codeId))).sort()).toEqual(
      [
        [one.id, ['target_url'], NEW],
        [two.id, ['policy'], TARGET],
        [present(three?.codeId), ['target_url', 'policy'], NEW],
      ].sort(),
    );
    const { versions } = await targets().listTargetVersions({ id: two.id });
    expect(versions.map(({ version, targetUrl, author, note }) => [version, targetUrl, author, note])).toEqual([
      [2, TARGET, 'anna@example.com', 'The season is over.'],
      [1, TARGET, '', ''],
    ]);
    expect(versions.map((version) => version.policy && policyToJson(version.policy))).toEqual([
      policyToJson(GONE),
      undefined,
    ]);
  });

  test('a row that can’t be applied fails by itself, with a sentence, and the others are applied', async () => {
    const [one, deleted, foreign] = [
      await account.create(),
      await account.create(),
      await (await api.account()).create(),
    ];
    await account.call('DELETE', `/qr-codes/${deleted.id}`);
    const codes = internal(api.signpost, CodesService, account.id);
    const { code: page } = await codes.createLandingPageCode({ landingPage: { title: 'Menu', text: 'Open' } });
    const name = { code: { case: 'id', value: one.id } } as const;
    const { change, rows } = await changed([
      { targetUrl: NEW },
      name,
      byId(one.id, 'ftp://example.com'),
      { ...name, policy: policyOf({ rules: [{ then: { target_url: 'nowhere' } }] }) },
      { ...name, policy: policyOf({ rules: Array(21).fill({ then: { page: 'gone' } }) }) },
      { ...name, policy: policyOf({ rules: Array(20).fill({ then: { target_url: `${NEW}/${'é'.repeat(600)}` } }) }) },
      { ...name, policy: { rules: [{ name: 'a\0b', outcome: { kind: { case: 'targetUrl', value: NEW } } }] } },
      {
        ...name,
        policy: {
          rules: [{ when: { operatingSystems: ['a\0'] }, outcome: { kind: { case: 'targetUrl', value: NEW } } }],
        },
      },
      byId('qr_0'),
      byId(deleted.id),
      byId(foreign.id),
      byId(present(page).id),
      { code: { case: 'shortCode', value: foreign.short_code }, targetUrl: NEW },
      { code: { case: 'shortCode', value: '\0'.repeat(1_000) }, targetUrl: NEW },
      { code: { case: 'externalRef', value: 'unheard of' }, targetUrl: NEW },
      byId(one.id),
      byId(one.id, `${NEW}/2`),
    ]);
    expect(counts(present(change))).toEqual({ total: 17, pending: 0, changed: 1, unchanged: 0, failed: 16 });
    expect(rows.map(({ reason }) => reason)).toEqual([
      'Name the code by id, short_code or external_ref.',
      'Set at least one of target_url and policy.',
      'target_url: must be an absolute http or https URL.',
      'policy.rules[0].outcome.target_url: must be an absolute http or https URL.',
      'policy.rules: must contain no more than 20 items.',
      expect.stringMatching(/^policy: must have at most 60,000 bytes; this one has [67]\d,\d{3}\.$/),
      'policy.rules[0].name: must not contain the NUL character.',
      expect.stringMatching(/^policy\.rules\[0\]\.when\.operating_systems: a\u2400 is none of /),
      'id: there is no such code on this account.',
      'id: there is no such code on this account.',
      'id: there is no such code on this account.',
      'Only dynamic codes have a target.',
      'short_code: there is no such code on this account.',
      'short_code: must not contain the NUL character.',
      'external_ref: no code of this account was created with this reference.',
      '',
      'An earlier row already changes this code.',
    ]);
    expect(rows[13]?.code).toEqual({ case: 'shortCode', value: `${'\u2400'.repeat(256)}…` });
    expect(rows[15]).toMatchObject({ status: CHANGED, version: 2 });
    expect((await targets().getTarget({ id: one.id })).target).toMatchObject({ version: 2, targetUrl: NEW });
    expect(await updates(one.id)).toHaveLength(1);
  });

  test('a target that is as before makes no version and no event; an empty policy removes one', async () => {
    const [one, two] = [await account.create(), await account.create()];
    await targets().setTarget({ id: two.id, policy: GONE });
    const { rows } = await changed([
      byId(one.id, TARGET),
      { code: { case: 'id', value: two.id }, targetUrl: TARGET, policy: GONE },
    ]);
    expect(rows.map(({ status, version }) => [status, version])).toEqual([
      [UNCHANGED, 1],
      [UNCHANGED, 2],
    ]);
    const { rows: removed } = await changed([
      { code: { case: 'id', value: one.id }, policy: {} },
      { code: { case: 'id', value: two.id }, policy: {} },
    ]);
    expect(removed.map(({ status, version }) => [status, version])).toEqual([
      [UNCHANGED, 1],
      [CHANGED, 3],
    ]);
    expect(await updates(one.id)).toEqual([]);
    expect((await targets().getTarget({ id: two.id })).target).toMatchObject({ version: 3 });
    await expect.poll(() => scanned(two.short_code), EVENTUALLY).toEqual([TARGET, TARGET]);
  });

  test('pages of rows come in the order sent, also by status', async () => {
    const codes = await Promise.all(Array.from({ length: 5 }, () => account.create()));
    const { change } = await changed(codes.flatMap(({ id }) => [byId(id), byId(id, 'nowhere')]));
    const { id } = present(change);
    const first = await targets().getTargetChange({ id, limit: 3, status: FAILED });
    expect(first.rows.map(({ position }) => position)).toEqual([1, 3, 5]);
    const { nextCursor: cursor } = first;
    const second = await targets().getTargetChange({ id, limit: 3, status: FAILED, cursor });
    expect([second.rows.map(({ position }) => position), second.nextCursor]).toEqual([[7, 9], '']);
    const all = await targets().getTargetChange({ id, limit: 6 });
    expect(all.rows.map(({ position }) => position)).toEqual([0, 1, 2, 3, 4, 5]);
    expect((await targets().getTargetChange({ id, status: TargetRowStatus.PENDING })).rows).toEqual([]);
    expect((await targets().getTargetChange({ id, status: CHANGED })).rows).toHaveLength(5);
    const wrong = targets().getTargetChange({ id, cursor });
    await expect(wrong).rejects.toSatisfy((error) => readFailure(error).reason === 'INVALID_CURSOR');
  });
});

test('a dry run reports what would happen, and changes no code', async () => {
  const [one, two] = [await account.create(), await account.create()];
  await targets().setTarget({ id: two.id, targetUrl: NEW });
  const { change } = await targets().changeTargets({
    rows: [byId(one.id), byId(two.id), byId('qr_0'), byId(one.id)],
    dryRun: true,
  });
  expect(change).toMatchObject({ dryRun: true, status: TargetChangeStatus.COMPLETED });
  expect(counts(present(change))).toEqual({ total: 4, pending: 0, changed: 1, unchanged: 1, failed: 2 });
  const { rows } = await targets().getTargetChange({ id: present(change).id });
  expect(rows.map(({ status, version, codeId }) => [status, version, codeId])).toEqual([
    [CHANGED, 2, one.id],
    [UNCHANGED, 2, two.id],
    [FAILED, 0, ''],
    [FAILED, 0, one.id],
  ]);
  expect((await targets().getTarget({ id: one.id })).target).toMatchObject({ version: 1, targetUrl: TARGET });
  expect(await updates(one.id)).toEqual([]);
});

describe('a request', () => {
  const call = (of: Account, headers: Record<string, string> = {}) => {
    let replay: string | null = null;
    const client = internal(api.signpost, TargetsService, of.id);
    return {
      send: (rows: Rows) =>
        client.changeTargets(
          { rows: present(rows) },
          {
            headers,
            onHeader: (received) => {
              replay = received.get('idempotent-replay');
            },
          },
        ),
      replay: () => replay,
    };
  };

  test('with an idempotency key is applied once, and answered again', async () => {
    const code = await account.create();
    const { send, replay } = call(account, { 'idempotency-key': randomUUID() });
    const first = await send([byId(code.id)]);
    expect([replay(), first.change?.status]).toEqual(['false', TargetChangeStatus.COMPLETED]);
    await targets().setTarget({ id: code.id, targetUrl: TARGET });
    const again = await send([byId(code.id)]);
    expect([replay(), again]).toEqual(['true', first]);
    expect((await targets().getTarget({ id: code.id })).target).toMatchObject({ version: 3, targetUrl: TARGET });
    await expect(send([byId(code.id, TARGET)])).rejects.toMatchObject({ code: Code.AlreadyExists });
  });

  test('without rows, with too many, or with too long a note fails', async () => {
    await expect(targets().changeTargets({})).rejects.toMatchObject({ code: Code.InvalidArgument });
    const long = targets().changeTargets({ rows: [byId('qr_0')], note: 'x'.repeat(201) });
    await expect(long).rejects.toMatchObject({ code: Code.InvalidArgument });
    const many = targets().changeTargets({ rows: Array.from({ length: 25_001 }, () => byId('qr_0')) });
    await expect(many).rejects.toMatchObject({ code: Code.OutOfRange });
  });

  test('costs one request of the quota for every hundred rows, or nothing if they are not left', async () => {
    const limited = await api.account({ overrides: { monthlyQuota: 3n } });
    const code = await limited.create();
    const change = (rows: number) =>
      fetch(`http://127.0.0.1:${api.signpost.corePort}/signpost.targets.v1.TargetsService/ChangeTargets`, {
        method: 'POST',
        headers: { authorization: `Bearer ${limited.apiKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({ rows: Array.from({ length: rows }, () => ({ id: code.id, targetUrl: NEW })) }),
      });
    const rejected = await change(201);
    expect(rejected.status).toBe(429);
    expect(((await rejected.json()) as { message: string }).message).toContain('This call costs 3 requests, but 2 of');
    const accepted = await change(101);
    expect([accepted.status, accepted.headers.get('ratelimit-remaining')]).toEqual([200, '0']);
    expect((await targets(limited).getTarget({ id: code.id })).target).toMatchObject({ version: 2, author: 'api' });
  });
});

test('concurrent changes of the same codes leave each with one version and one event per change', async () => {
  const batches = internal(api.signpost, BatchesService, account.id);
  const { batch } = await batches.createBatch({ rows: Array.from({ length: 400 }, () => ({ targetUrl: TARGET })) });
  const { rows: printed } = await batches.getBatch({ id: present(batch).id, limit: 400 });
  const ids = printed.map(({ codeId }) => present(codeId));
  const cores = api.signpost.cores.map(({ url }) =>
    internal({ ...api.signpost, corePort: Number(new URL(url).port) }, TargetsService, account.id),
  );
  // Each in another order, on either core.
  const changes = await Promise.all(
    Array.from({ length: 6 }, (_, nth) => {
      const rows = (nth % 2 === 0 ? ids : ids.toReversed()).map((id) => byId(id, `${NEW}/${nth}`));
      return present(cores[nth % 2]).changeTargets({ rows });
    }),
  );
  for (const { change } of changes) {
    expect(counts(present(change))).toEqual({ total: 400, pending: 0, changed: 400, unchanged: 0, failed: 0 });
  }
  const uuids = ids.map((id) => decodeId('qr', id));
  const { rows } = await database.query(
    `select count(*)::integer as n, min(version) as first, max(version) as last from target_versions
     where code_id = any($1) group by code_id`,
    [uuids],
  );
  expect(new Set(rows.map(({ n, first, last }) => `${n} ${first} ${last}`))).toEqual(new Set(['7 1 7']));
  expect(rows).toHaveLength(400);
  expect(await updates(...ids)).toHaveLength(6 * 400);
  const versions = await Promise.all(
    changes.map(async ({ change }) => (await targets().getTargetChange({ id: present(change).id })).rows[0]?.version),
  );
  expect(versions.sort()).toEqual([2, 3, 4, 5, 6, 7]);
});

test('changes are seen by their account only, newest first', async () => {
  const [mine, other] = [await api.account(), await api.account()];
  const code = await mine.create();
  const ids: string[] = [];
  for (const url of ['a', 'b', 'c']) {
    const { change } = await changed([byId(code.id, `https://example.com/${url}`)], { of: mine });
    ids.unshift(present(change).id);
  }
  const first = await targets(mine).listTargetChanges({ limit: 2 });
  expect(first.changes.map(({ id }) => id)).toEqual(ids.slice(0, 2));
  const second = await targets(mine).listTargetChanges({ limit: 2, cursor: first.nextCursor });
  expect([second.changes.map(({ id }) => id), second.nextCursor]).toEqual([ids.slice(2), '']);
  expect((await targets(other).listTargetChanges({})).changes).toEqual([]);
  const foreign = targets(other).listTargetChanges({ cursor: first.nextCursor });
  await expect(foreign).rejects.toMatchObject({ code: Code.InvalidArgument });
  const id = present(ids[0]);
  await expect(targets(other).getTargetChange({ id })).rejects.toMatchObject({ code: Code.NotFound });
  const watched = targets(other).watchTargetChange({ id })[Symbol.asyncIterator]().next();
  await expect(watched).rejects.toMatchObject({ code: Code.NotFound });
  const { rows } = await changed([byId(code.id)], { of: other });
  expect(rows).toMatchObject([{ status: FAILED, reason: 'id: there is no such code on this account.' }]);
});

test('an internal caller’s change is audited, a dry run is not', async () => {
  const audited = await api.account();
  const code = await audited.create();
  await changed([byId(code.id)], { of: audited, dryRun: true });
  const { change } = await changed([byId(code.id)], { of: audited });
  const { entries } = await internal(api.signpost, AccountsService, audited.id).listAuditEntries({});
  expect(entries.filter(({ action }) => action.startsWith('TargetsService'))).toMatchObject([
    { action: 'TargetsService/ChangeTargets', actor: 'anna@example.com', subject: present(change).id },
  ]);
});
