import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { decodeId } from '../../common/contract/ids.ts';
import { AccountsService, Plan, Role } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { BatchesService } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { DomainsService } from '../../proto/gen/signpost/domains/v1/domains_pb.ts';
import { TaxonomyService } from '../../proto/gen/signpost/taxonomy/v1/taxonomy_pb.ts';
import { WebhooksService } from '../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { type Account, contract, type Failure, type One, TARGET } from './client.ts';
import { internal } from './internal.ts';

const api = contract('file');
let pool: pg.Pool;
beforeAll(() => {
  pool = new pg.Pool({ connectionString: api.signpost.databaseUrl });
});
afterAll(() => pool.end());

interface Label {
  readonly id: string;
  readonly name: string;
  readonly code_count: number;
}
type Created = One & { readonly warnings?: readonly string[] };
interface Rows {
  readonly data: {
    readonly status: string;
    readonly counts: object;
    readonly rows: readonly { readonly id: string; readonly warnings?: readonly string[] }[];
  };
}

const enterprise = () => api.account({ plan: Plan.ENTERPRISE });

async function list(account: Account, kind: 'folders' | 'tags'): Promise<readonly Label[]> {
  const { status, body } = await account.call<{ data: readonly Label[] }>('GET', `/${kind}`);
  expect(status).toBe(200);
  return body.data;
}

async function createBatch(account: Account, rows: readonly object[]): Promise<Rows['data']> {
  const made = await account.call<{ data: { id: string } }>('POST', '/batches', { json: { rows } });
  // A 202 if it takes longer than 20 s beside other tests.
  expect([201, 202]).toContain(made.status);
  const read = async () => (await account.call<Rows>('GET', `/batches/${made.body.data.id}?limit=1000`)).body.data;
  await expect.poll(async () => (await read()).status, { interval: 1_000 }).toBe('completed');
  return read();
}

/** Creates labels named `{prefix}{n}`. */
async function seed(account: Account, kind: 'folders' | 'tags', count: number, prefix = 'seed '): Promise<void> {
  await pool.query(
    `insert into ${kind} (id, account_id, name) select uuidv7(), $1, $2 || n from generate_series(1, $3::integer) n`,
    [decodeId('acct', account.id), prefix, count],
  );
}

const outcome = (call: Promise<unknown>) =>
  call.then(
    () => 'succeeded',
    (error: unknown) => {
      const { reason, message } = readFailure(error);
      return `${reason} ${message}`;
    },
  );

describe('an account has at most 10,000 tags and 10,000 folders', () => {
  test('batches that name 12,000 tags of 100 four-byte characters create 10,000, and the list has all of them', async () => {
    const account = await enterprise();
    const tag = (n: number) => `${'😀'.repeat(95)}${String(n).padStart(5, '0')}`;
    const rows = (from: number) =>
      Array.from({ length: 300 }, (_, row) => ({
        target_url: TARGET,
        tags: Array.from({ length: 20 }, (_, n) => tag(from + row * 20 + n)),
      }));
    const first = await createBatch(account, rows(0));
    expect(first.rows.filter(({ warnings }) => warnings)).toEqual([]);
    const second = await createBatch(account, rows(6_000));
    expect(second.counts).toMatchObject({ total: 300, created: 300 });
    expect(second.rows.map(({ warnings }) => warnings)).toEqual(
      Array.from({ length: 300 }, (_, row) =>
        row < 200 ? undefined : [expect.stringMatching(/^tags: .*10,000 tags/)],
      ),
    );
    const tags = await list(account, 'tags');
    expect(tags.map(({ name, code_count }) => `${name} ${code_count}`)).toEqual(
      Array.from({ length: 10_000 }, (_, n) => `${tag(n)} 1`),
    );
    const lost = await account.call<One>('GET', `/qr-codes/${second.rows[200]?.id}`);
    expect(lost.body.data.tags).toEqual([]);
    // It takes 10 to 25 s beside other tests.
  }, 90_000);

  test.each([
    { kind: 'tags', fields: (name: string) => ({ tags: [name] }), none: { tags: [] }, says: /^tags: .*10,000 tags/ },
    {
      kind: 'folders',
      fields: (name: string) => ({ folder: name }),
      none: { folder: null },
      says: /^folder: .*10,000 folders/,
    },
  ] as const)('past it, $kind: POST loses the label with a warning, PATCH is a 400', async ({ kind, ...of }) => {
    const account = await enterprise();
    await seed(account, kind, 10_000);
    const post = (name: string) =>
      account.call<Created>('POST', '/qr-codes', { json: { target_url: TARGET, ...of.fields(name) } });
    const made = await post('one more');
    expect([made.status, made.body.data]).toEqual([201, expect.objectContaining(of.none)]);
    expect(made.body.warnings).toEqual([expect.stringMatching(of.says)]);
    const known = await post('SEED 7');
    expect([known.status, known.body.warnings]).toEqual([201, undefined]);

    const { id } = made.body.data;
    const patch = (name: string) =>
      account.call<Failure>('PATCH', `/qr-codes/${id}`, { json: { name: 'changed', ...of.fields(name) } });
    const refused = await patch('one more');
    expect([refused.status, refused.body.error]).toEqual([400, expect.stringMatching(of.says)]);
    expect((await account.call<One>('GET', `/qr-codes/${id}`)).body.data).toEqual(made.body.data);
    expect((await patch('seed 8')).status).toBe(200);

    const { rows } = await createBatch(account, [
      { target_url: TARGET, ...of.fields('one more') },
      { target_url: TARGET, ...of.fields('seed 9') },
    ]);
    expect(rows.map(({ warnings }) => warnings)).toEqual([[expect.stringMatching(of.says)], undefined]);

    // Renaming and merging still work, and deletions free slots.
    const labels = internal(api.signpost, TaxonomyService, account.id);
    const [one, two] = await list(account, kind);
    const asked = { id: one?.id ?? '', name: 'another name', into: two?.id ?? '' };
    await (kind === 'tags' ? labels.renameTag(asked) : labels.renameFolder(asked));
    await (kind === 'tags' ? labels.mergeTags(asked) : labels.mergeFolders(asked));
    expect((await post('one more')).body.warnings).toBeUndefined();
    expect((await post('two more')).body.warnings).toEqual([expect.stringMatching(of.says)]);
    expect(await list(account, kind)).toHaveLength(10_000);
  });

  test('concurrent creates, changes and batches share the remaining slots and use no more', async () => {
    const account = await enterprise();
    await seed(account, 'tags', 9_990);
    await seed(account, 'folders', 9_999);
    const codes = internal(api.signpost, CodesService, account.id);
    const batches = internal(api.signpost, BatchesService, account.id);
    const { code } = await codes.createCode({ targetUrl: TARGET });
    const mask = { paths: ['tags'] };
    const creates = Array.from({ length: 12 }, (_, n) =>
      codes.createCode({ targetUrl: TARGET, folder: `f${n % 4}`, tags: [`a${n}`, `b${n % 3}`, 'seed 1'] }),
    );
    const changes = Array.from({ length: 4 }, (_, n) =>
      outcome(codes.updateCode({ id: code?.id ?? '', updateMask: mask, tags: [`c${n}`] })),
    );
    const staged = Array.from({ length: 3 }, (_, n) =>
      batches.createBatch({ rows: [{ targetUrl: TARGET, folder: `g${n}`, tags: [`d${n}`, `b${n}`] }] }),
    );
    await Promise.all([...creates, ...changes, ...staged]);
    await expect
      .poll(async () => (await batches.listBatches({})).batches.filter(({ completedAt }) => !completedAt))
      .toEqual([]);
    expect(await list(account, 'tags')).toHaveLength(10_000);
    const folders = await list(account, 'folders');
    expect(folders).toHaveLength(10_000);
    // Labels created in time are assigned to all codes that named them.
    expect(folders.filter(({ name }) => !name.startsWith('seed'))).toHaveLength(1);
    for (const [n, { code, warnings }] of (await Promise.all(creates)).entries()) {
      const isWarned = warnings.some((warning) => warning.startsWith('folder'));
      expect(code?.folder?.name).toBe(isWarned ? undefined : `f${n % 4}`);
    }
    for (const { code } of await Promise.all(creates)) expect(code?.tags).toContain('seed 1');
  });

  test('an account that had more before gets a 503 and no part of its list', async () => {
    const account = await enterprise();
    await seed(account, 'tags', 10_001);
    const { status, body } = await account.call('GET', '/tags');
    expect([status, body.error]).toEqual([503, expect.stringMatching(/10,000 tags/)]);
    expect(await list(account, 'folders')).toEqual([]);
  });
});

describe.each([
  {
    what: 'domains',
    most: 100,
    add: (account: Account, n: number) =>
      internal(api.signpost, DomainsService, account.id).addDomain({ hostname: `menu${n}.example.com` }),
    count: async (account: Account) =>
      (await internal(api.signpost, DomainsService, account.id).listDomains({})).domains.length,
  },
  {
    what: 'webhook endpoints',
    most: 50,
    add: (account: Account, n: number) =>
      internal(api.signpost, WebhooksService, account.id).createEndpoint({
        url: `https://hooks.example.com/${n}`,
        events: ['qr.created'],
      }),
    count: async (account: Account) =>
      (await internal(api.signpost, WebhooksService, account.id).listEndpoints({})).endpoints.length,
  },
  {
    what: 'members',
    most: 1_000,
    add: (account: Account, n: number) =>
      internal(api.signpost, AccountsService, account.id).addMember({
        email: `m${n}@example.com`,
        role: Role.VIEWER,
      }),
    count: async (account: Account) =>
      (await internal(api.signpost, AccountsService, account.id).listMembers({})).members.length,
  },
])('an account has at most $most $what', ({ what, most, add, count }) => {
  test('under concurrent adds too; the error states the limit', async () => {
    const account = await enterprise();
    for (let added = 0; added < most - 3; added += 50) {
      await Promise.all(Array.from({ length: Math.min(50, most - 3 - added) }, (_, n) => add(account, added + n)));
    }
    const outcomes = await Promise.all(Array.from({ length: 10 }, (_, n) => outcome(add(account, most + n))));
    expect(outcomes.filter((each) => each === 'succeeded')).toHaveLength(3);
    const stated = `LIMIT_REACHED Remove one first: an account has at most ${most.toLocaleString('en')} ${what}.`;
    expect(new Set(outcomes.filter((each) => each !== 'succeeded'))).toEqual(new Set([stated]));
    expect(await count(account)).toBe(most);
    expect(await outcome(add(await enterprise(), 0))).toBe('succeeded');
  });
});
