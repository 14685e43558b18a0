import { Client, Pool, type QueryResult } from 'pg';
import pino from 'pino';
import { expect, onTestFinished, test, vi } from 'vitest';
import { decodeId } from '../../../common/contract/ids.ts';
import { transaction } from '../../../common/postgres/sql.ts';
import { CodesService } from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { recordingLogger } from '../../../test/harness/recording-logger.ts';
import { listen } from '../../db/notifications.ts';
import { codesServices } from '../codes-services.fixture.ts';
import { labelledCodes, startRelabelledAnnouncements } from './relabelled-codes.ts';

const { pool, newTenant, call } = codesServices();
const logger = pino({ level: 'silent' });

function startAnnouncements(): { stop(): Promise<void> } {
  const notifications = listen(pool(), logger);
  const announcements = startRelabelledAnnouncements({
    pool: pool(),
    notifications,
    platformUrl: 'https://go.example',
    logger,
  });
  onTestFinished(async () => {
    await announcements.stop();
    await notifications.stop();
  });
  return announcements;
}

/** The types of a code's events, in order. */
async function eventTypes(id: string): Promise<string[]> {
  const { rows } = await pool().query<{ type: string }>(
    `select headers ->> 'ce_type' as type from outbox where key = $1 order by id`,
    [id],
  );
  return rows.map(({ type }) => type);
}

const queued = async () => (await pool().query('select from relabelled_codes')).rowCount;
const waiting = async () =>
  (await pool().query(`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`))
    .rowCount;

/** A code with a tag that has changed since, which is to be announced. */
async function relabelledCode() {
  const of = await newTenant();
  const created = await call(
    CodesService.method.createCode,
    { targetUrl: 'https://example.com/', tags: ['a'] },
    { of },
  );
  const { rows } = await pool().query<{ id: string }>('select id from tags where account_id = $1', [of.id]);
  await transaction(pool(), (tx) => labelledCodes.changed(tx, of.id, 'tag', rows[0]?.id ?? ''));
  return { of, id: created.code?.id ?? '' };
}

/** The last event of a code, as in the outbox. */
async function lastEvent(id: string): Promise<unknown> {
  const { rows } = await pool().query<{ value: Buffer }>(
    'select value from outbox where key = $1 order by id desc limit 1',
    [id],
  );
  return JSON.parse(String(rows[0]?.value));
}

test('an announcement that waits for a code shows it as the change that it waited for has left it', async () => {
  const of = await newTenant();
  const created = await call(
    CodesService.method.createCode,
    { targetUrl: 'https://example.com/', tags: ['a', 'b'] },
    { of },
  );
  const id = created.code?.id ?? '';
  const { rows } = await pool().query<{ id: string }>('select id from tags where account_id = $1 order by name', [
    of.id,
  ]);
  const [a = '', b = ''] = rows.map((row) => row.id);
  await transaction(pool(), (tx) => labelledCodes.changed(tx, of.id, 'tag', a));

  await transaction(pool(), async (deletion) => {
    await labelledCodes.changed(deletion, of.id, 'tag', b);
    await deletion.query('delete from code_tags where code_id = $1 and tag_id = $2', [decodeId('qr', id), b]);
    startAnnouncements();
    await expect.poll(waiting).toBe(1);
  });
  const { code } = await call(CodesService.method.getCode, { id }, { of });
  expect(code).toMatchObject({ version: 3n, tags: ['a'] });
  await expect.poll(() => lastEvent(id)).toMatchObject({ version: 3, tags: ['a'] });
});

test('a code whose folder and tags change before it is announced has one event, which names both', async () => {
  const of = await newTenant();
  const request = { targetUrl: 'https://example.com/', folder: 'f', tags: ['a'] };
  const { code } = await call(CodesService.method.createCode, request, { of });
  for (const [kind, table] of [
    ['tag', 'tags'],
    ['folder', 'folders'],
    ['tag', 'tags'],
  ] as const) {
    const { rows } = await pool().query<{ id: string }>(`select id from ${table} where account_id = $1`, [of.id]);
    await transaction(pool(), (tx) => labelledCodes.changed(tx, of.id, kind, rows[0]?.id ?? ''));
  }
  startAnnouncements();
  await expect.poll(() => eventTypes(code?.id ?? '')).toEqual(['qr.created', 'qr.updated']);
  expect(await lastEvent(code?.id ?? '')).toMatchObject({ version: 4, changed: ['folder', 'tags'] });
});

test('a code that is deleted before it is announced has no event after its deletion', async () => {
  const { of, id } = await relabelledCode();
  await call(CodesService.method.deleteCode, { id }, { of });
  startAnnouncements();
  await expect.poll(queued).toBe(0);
  expect(await eventTypes(id)).toEqual(['qr.created', 'qr.archived']);
});

test('of two processes that announce a code at the same time, one does', async () => {
  const { id } = await relabelledCode();
  const processes = await transaction(pool(), async (tx) => {
    await tx.query('select from codes where id = $1 for update', [decodeId('qr', id)]);
    const started = [startAnnouncements(), startAnnouncements()];
    await expect.poll(waiting).toBe(2);
    return started;
  });
  await expect.poll(queued).toBe(0);
  await Promise.all(processes.map((process) => process.stop()));
  expect(await eventTypes(id)).toEqual(['qr.created', 'qr.updated']);
});

test('an account with very many codes to announce takes turns with the others', async () => {
  const [many, other] = [await relabelledCode(), await relabelledCode()].sort((a, b) => (a.of.id < b.of.id ? -1 : 1));
  if (!many || !other) throw new Error('there are two');
  // As many as are announced at a time, before the one that is locked; their codes no longer exist.
  await pool().query(
    `insert into relabelled_codes (account_id, code_id, changed)
     select $1, ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, '{tags}' from generate_series(1, 500) n`,
    [many.of.id],
  );
  await transaction(pool(), async (tx) => {
    await tx.query('select from codes where id = $1 for update', [decodeId('qr', many.id)]);
    startAnnouncements();
    await expect.poll(() => eventTypes(other.id)).toEqual(['qr.created', 'qr.updated']);
  });
  await expect.poll(() => eventTypes(many.id)).toEqual(['qr.created', 'qr.updated']);
});

test('codes to announce are found by index, even by a plan from when there were few', async () => {
  const { id } = await relabelledCode();
  await pool().query('vacuum analyze relabelled_codes');
  const { query } = Client.prototype;
  const plans: string[] = [];
  function explaining(this: Client, what: { name?: string; text: string; values: unknown[] }, ...rest: unknown[]) {
    if (what.name?.endsWith('_relabelled')) {
      const explained: Promise<QueryResult> = Reflect.apply(query, this, [`explain ${what.text}`, what.values]);
      void explained.then(({ rows }) => plans.push(JSON.stringify(rows)));
    }
    return Reflect.apply(query, this, [what, ...rest]);
  }
  const spy = vi.spyOn(Client.prototype, 'query').mockImplementation(explaining as typeof query);
  onTestFinished(() => spy.mockRestore());
  startAnnouncements();
  await expect.poll(() => eventTypes(id)).toEqual(['qr.created', 'qr.updated']);
  expect(plans.length).toBeGreaterThanOrEqual(2);
  expect(plans.filter((plan) => /Seq Scan|Bitmap/.test(plan))).toEqual([]);
});

test('announcements that fail every second say so once a minute', async () => {
  const { lines, logger: recording } = recordingLogger();
  const away = new Pool({ host: 'localhost', port: 1 });
  const connect = vi.spyOn(away, 'connect');
  const notifications = listen(pool(), logger);
  const announcements = startRelabelledAnnouncements({
    pool: away,
    notifications,
    platformUrl: 'https://go.example',
    logger: recording,
  });
  await expect.poll(() => connect.mock.calls.length).toBeGreaterThan(2);
  await announcements.stop();
  await notifications.stop();
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ level: 40, err: { code: 'ECONNREFUSED' } }]);
});
