import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { readFailure } from '../../common/contract/errors.ts';
import { decodeId } from '../../common/contract/ids.ts';
import { AccountsService, Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { TaxonomyService } from '../../proto/gen/signpost/taxonomy/v1/taxonomy_pb.ts';
import { type Account, contract, type One, type Page, TARGET } from './client.ts';
import { internal } from './internal.ts';

const EVENTUALLY = { interval: 50 };

const api = contract('file');
let database: pg.Client;
beforeAll(async () => {
  database = new pg.Client({ connectionString: api.signpost.databaseUrl });
  await database.connect();
});
afterAll(() => database.end());

interface Label {
  readonly id: string;
  readonly name: string;
  readonly code_count: number;
}

const labels = (account: Account) => internal(api.signpost, TaxonomyService, account.id);
const reasonOf = (call: Promise<unknown>) =>
  call.then(
    () => 'succeeded',
    (error: unknown) => readFailure(error).reason,
  );

/** Common tests of folders and tags. */
const KINDS = [
  {
    kind: 'folder',
    fields: (name: string) => ({ folder: name }),
    rename: (account: Account, id: string, name: string) => labels(account).renameFolder({ id, name }),
    remove: (account: Account, id: string) => labels(account).deleteFolder({ id }),
    merge: (account: Account, id: string, into: string) => labels(account).mergeFolders({ id, into }),
  },
  {
    kind: 'tag',
    fields: (name: string) => ({ tags: [name] }),
    rename: (account: Account, id: string, name: string) => labels(account).renameTag({ id, name }),
    remove: (account: Account, id: string) => labels(account).deleteTag({ id }),
    merge: (account: Account, id: string, into: string) => labels(account).mergeTags({ id, into }),
  },
] as const;

/** The data of the events of a code, oldest first, once there are `count`. */
async function eventsOf(id: string, count: number): Promise<(CodeJson & { changed?: string[] })[]> {
  const events = async () => {
    const { rows } = await database.query(
      `select headers->>'ce_sequence' as sequence, convert_from(value, 'utf8')::json as data from outbox
       where topic = 'signpost.events.v1' and key = $1 order by id`,
      [id],
    );
    for (const { sequence, data } of rows) expect(sequence).toBe(String(data.version));
    return rows.map(({ data }) => data);
  };
  await expect.poll(async () => (await events()).length, EVENTUALLY).toBe(count);
  return events();
}

const read = async (account: Account, id: string) => (await account.call<One>('GET', `/qr-codes/${id}`)).body.data;

describe.each(KINDS)('a $kind', ({ kind, fields, rename, remove, merge }) => {
  const list = async (account: Account) => (await account.call<{ data: Label[] }>('GET', `/${kind}s`)).body.data;
  const named = async (account: Account, name: string) => {
    const found = (await list(account)).find((label) => label.name === name);
    if (!found) throw new Error(`no ${kind} is called ${name}`);
    return found;
  };

  const field = kind === 'folder' ? 'folder' : 'tags';

  test('keeps its id and its codes when renamed, which changes each of them', async () => {
    const account = await api.account();
    const code = await account.create({ name: 'a', ...fields('Berlin') });
    const { id } = await named(account, 'Berlin');
    await rename(account, id, '  Hamburg ');
    expect(await list(account)).toEqual([{ id, name: 'Hamburg', code_count: 1 }]);
    const expected = kind === 'folder' ? { folder: { id, name: 'Hamburg' } } : { tags: ['Hamburg'] };
    const renamed = { ...code, ...expected, version: 2, updated_at: expect.any(String) };
    expect(await read(account, code.id)).toEqual(renamed);
    const [, event] = await eventsOf(code.id, 2);
    expect(event).toEqual({ ...renamed, short: `/r/${code.short_code}`, changed: [field] });
    expect(Date.parse(event?.updated_at ?? '')).toBeGreaterThan(Date.parse(code.updated_at));
    await rename(account, id, 'HAMBURG');
    expect((await named(account, 'HAMBURG')).id).toBe(id);
    await rename(account, id, 'HAMBURG');
    expect((await eventsOf(code.id, 3)).map(({ version }) => version)).toEqual([1, 2, 3]);
    // The last call changed nothing.
    const { entries } = await internal(api.signpost, AccountsService, account.id).listAuditEntries({});
    expect(entries.filter(({ subject }) => subject === id)).toHaveLength(2);
  });

  test('is the same by every spelling that NFC and full case folding make equal', async () => {
    const account = await api.account();
    const spellings = [
      ['Straße', 'STRASSE', 'strasse'],
      ['ΟΔΟΣ', 'οδος', 'Οδοσ'],
      ['K\u00e4se', 'Ka\u0308se', 'K\u00c4SE'],
    ];
    for (const [first = '', ...others] of spellings) {
      await account.create(fields(first));
      for (const name of others) await account.create(fields(name));
    }
    const shown = (await list(account)).map(({ name, code_count }) => [name, code_count]);
    expect(shown).toEqual(expect.arrayContaining(spellings.map(([first]) => [first, 3])));
    expect(shown).toHaveLength(3);
    const found = await account.call<Page>('GET', `/qr-codes?${kind}=${encodeURIComponent('sTRASSe')}`);
    expect(found.body.total).toBe(3);
  });

  test('changes many codes at once and announces each', async () => {
    const account = await api.account({ plan: Plan.ENTERPRISE });
    const rows = Array.from({ length: 1_200 }, () => ({ target_url: TARGET, ...fields('Berlin') }));
    expect((await account.call('POST', '/batches', { json: { rows } })).status).toBe(201);
    const { id } = await named(account, 'Berlin');
    await rename(account, id, 'Bern');
    await remove(account, id);
    const announced = async () => {
      const { rows } = await database.query(
        `select key, max((headers->>'ce_sequence')::int)::int as version from outbox
         where headers->>'ce_source' = $1 and headers->>'ce_type' = 'qr.updated' group by key`,
        [`/accounts/${account.id}`],
      );
      return rows.filter(({ version }) => version === 3).length;
    };
    await expect.poll(announced, EVENTUALLY).toBe(rows.length);
    const { rows: waiting } = await database.query('select from relabelled_codes');
    expect(waiting).toHaveLength(0);
  });

  test('cannot be given the name of another one, in any case, or an invalid name', async () => {
    const account = await api.account();
    await account.create(fields('Berlin'));
    await account.create(fields('Hamburg'));
    const { id } = await named(account, 'Berlin');
    expect(await reasonOf(rename(account, id, 'hAMBURG'))).toBe('ALREADY_EXISTS');
    for (const name of ['', '  ', 'x'.repeat(101), 'a\nb', ...(kind === 'folder' ? ['None'] : [])]) {
      expect(await reasonOf(rename(account, id, name))).toBe('INVALID_FIELD');
    }
    expect((await list(account)).map(({ name }) => name)).toEqual(['Berlin', 'Hamburg']);
  });

  test('is current in the event of a code that is restored while it is renamed', async () => {
    const account = await api.account();
    const [other, code] = [await account.create(fields('Berlin')), await account.create(fields('Berlin'))];
    const { id } = await named(account, 'Berlin');
    await account.call('DELETE', `/qr-codes/${code.id}`);
    await database.query('begin');
    await database.query('select from codes where id = $1 for update', [decodeId('qr', other.id)]);
    const renaming = rename(account, id, 'Bern');
    const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    await expect.poll(async () => (await database.query(waiting)).rowCount, EVENTUALLY).toBe(1);
    const restoring = internal(api.signpost, CodesService, account.id).restoreCode({ id: code.id });
    await Promise.race([restoring, sleep(500)]);
    await database.query('commit');
    await Promise.all([renaming, restoring]);
    const expected = kind === 'folder' ? { folder: { id, name: 'Bern' } } : { tags: ['Bern'] };
    const { version } = await read(account, code.id);
    expect((await eventsOf(code.id, version)).at(-1)).toMatchObject({ ...expected, version });
  });

  test('is removed from its codes when deleted, which changes each of them', async () => {
    const account = await api.account();
    const [code, deleted] = [
      await account.create({ name: 'a', ...fields('Berlin') }),
      await account.create(fields('Berlin')),
    ];
    await account.call('DELETE', `/qr-codes/${deleted.id}`);
    const { id } = await named(account, 'Berlin');
    await remove(account, id);
    expect(await list(account)).toEqual([]);
    const expected = kind === 'folder' ? { folder: null } : { tags: [] };
    const changed = { ...code, ...expected, version: 2, updated_at: expect.any(String) };
    expect(await read(account, code.id)).toEqual(changed);
    expect((await eventsOf(code.id, 2))[1]).toMatchObject({ ...changed, changed: [field] });
    expect((await api.call('GET', `/r/${code.short_code}`)).status).toBe(302);
    await internal(api.signpost, CodesService, account.id).restoreCode({ id: deleted.id });
    expect(await read(account, deleted.id)).toMatchObject(expected);
    expect(await reasonOf(remove(account, id))).toBe('NOT_FOUND');
  });

  test('passes its codes to the other when merged, each once', async () => {
    const account = await api.account();
    const [one, other] = [await account.create(fields('Berlin')), await account.create(fields('berlin-mitte'))];
    if (kind === 'tag') await account.create({ tags: ['Berlin', 'berlin-mitte', 'x'] });
    const [from, to] = [await named(account, 'berlin-mitte'), await named(account, 'Berlin')];
    await merge(account, from.id, to.id);
    const shown = (await list(account)).filter(({ name }) => name !== 'x');
    expect(shown).toEqual([{ ...to, code_count: kind === 'tag' ? 3 : 2 }]);
    const page = await account.call<Page>('GET', `/qr-codes?${kind}=Berlin`);
    expect(page.body.data.map(({ id }) => id)).toEqual(expect.arrayContaining([one.id, other.id]));
    expect((await eventsOf(other.id, 2))[1]).toMatchObject({ version: 2, changed: [field] });
    expect(await read(account, one.id)).toEqual(one);
    expect(await reasonOf(merge(account, to.id, to.id))).toBe('INVALID_FIELD');
    expect(await reasonOf(merge(account, from.id, to.id))).toBe('NOT_FOUND');
  });

  test('of another account is not found', async () => {
    const [account, other] = [await api.account(), await api.account()];
    await account.create(fields('Berlin'));
    await other.create(fields('Hamburg'));
    const [foreign, own] = [await named(account, 'Berlin'), await named(other, 'Hamburg')];
    expect(await reasonOf(rename(other, foreign.id, 'x'))).toBe('NOT_FOUND');
    expect(await reasonOf(remove(other, foreign.id))).toBe('NOT_FOUND');
    expect(await reasonOf(merge(other, own.id, foreign.id))).toBe('NOT_FOUND');
    expect(await reasonOf(merge(other, foreign.id, own.id))).toBe('NOT_FOUND');
    expect((await list(account)).map(({ code_count }) => code_count)).toEqual([1]);
  });

  test('is deleted, merged and renamed while it is assigned to codes, without failed calls or lost codes', async () => {
    const account = await api.account();
    const codes = internal(api.signpost, CodesService, account.id);
    const seeds = await Promise.all(
      Array.from({ length: 10 }, () => codes.createCode({ targetUrl: TARGET, ...fields('a') })),
    );
    const ids = seeds.map(({ code }) => code?.id ?? '');
    const mask = { paths: [kind === 'folder' ? 'folder' : 'tags'] };
    const label = (nth: number) => ['a', 'b', 'c', 'd'][nth % 4] ?? '';
    const calls = Array.from({ length: 120 }, (_, nth) => async () => {
      if (nth % 3 === 0) return codes.createCode({ targetUrl: TARGET, ...fields(label(nth)) });
      if (nth % 3 === 1) return codes.updateCode({ id: ids[nth % 10] ?? '', updateMask: mask, ...fields(label(nth)) });
      const [one, two] = await labelIds(account, kind);
      if (!one || !two) return undefined;
      return [
        () => remove(account, one),
        () => merge(account, one, two),
        () => merge(account, two, one),
        () => rename(account, one, `${nth}`),
      ][nth % 4]?.();
    });
    const answers = await Promise.all(calls.map((call) => reasonOf(call())));
    const failed = answers.flatMap((reason, nth) => (reason === 'succeeded' ? [] : [{ nth, reason }]));
    // The label of a deletion, merge or rename may be deleted meanwhile; a code always gets its own.
    expect(failed.filter(({ nth, reason }) => nth % 3 !== 2 || reason !== 'NOT_FOUND')).toEqual([]);
    const { codes: left, total } = await codes.listCodes({ limit: 100 });
    expect(total).toBe(50n);
    const counted = (await list(account)).reduce((sum, { code_count }) => sum + code_count, 0);
    expect(counted).toBe(
      left.reduce((sum, code) => sum + (kind === 'folder' ? (code.folder ? 1 : 0) : code.tags.length), 0),
    );
  });
});

async function labelIds(account: Account, kind: 'folder' | 'tag'): Promise<string[]> {
  const found =
    kind === 'folder' ? (await labels(account).listFolders({})).folders : (await labels(account).listTags({})).tags;
  return found.map(({ id }) => id).sort(() => Math.random() - 0.5);
}
