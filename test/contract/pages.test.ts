import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { decodeId, encodeId, newUuid } from '../../common/contract/ids.ts';
import { AccountsService } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { BatchesService } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { TaxonomyService } from '../../proto/gen/signpost/taxonomy/v1/taxonomy_pb.ts';
import { WebhooksService } from '../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { contract } from './client.ts';
import { internal } from './internal.ts';

const api = contract({ env: { ROLES: 'rpc' } });
let pool: pg.Pool;
beforeAll(() => {
  pool = new pg.Pool({ connectionString: api.signpost.databaseUrl });
});
afterAll(() => pool.end());

interface Page {
  readonly items: readonly { readonly id: string }[];
  readonly nextCursor?: string | undefined;
}

/** A list of an account: `read` reads a page from the core. */
interface List {
  readonly name: string;
  readonly standard: number;
  readonly most: number;
  /** The SQL that adds one item for each name in $3 to the account $1, or to what `prepare` made ($2). */
  readonly insert: string;
  prepare?(account: string): Promise<string>;
  read(account: string, made: string, page: { limit?: number; cursor?: string }): Promise<Page>;
}

const accounts = (account?: string) => internal(api.signpost, AccountsService, account);
const labels = (account: string) => internal(api.signpost, TaxonomyService, account);
const webhooks = (account: string) => internal(api.signpost, WebhooksService, account);

const LISTS: readonly List[] = [
  {
    name: 'folders',
    standard: 10_000,
    most: 10_000,
    insert: `insert into folders (id, account_id, name) select uuidv7(), $1, name from unnest($3::text[]) name
             where $2::text is not null`,
    async read(account, _, page) {
      const { folders: items, nextCursor } = await labels(account).listFolders(page);
      return { items, nextCursor };
    },
  },
  {
    name: 'tags',
    standard: 10_000,
    most: 10_000,
    insert: `insert into tags (id, account_id, name) select uuidv7(), $1, name from unnest($3::text[]) name
             where $2::text is not null`,
    async read(account, _, page) {
      const { tags: items, nextCursor } = await labels(account).listTags(page);
      return { items, nextCursor };
    },
  },
  {
    name: 'audit entries',
    standard: 100,
    most: 1_000,
    insert: `insert into audit_entries (id, account_id, actor, action, subject)
             select uuidv7(), $1, 'a test', name, '' from unnest($3::text[]) name where $2::text is not null`,
    async read(account, _, page) {
      const { entries, nextCursor } = await accounts(account).listAuditEntries(page);
      return { items: entries, nextCursor };
    },
  },
  {
    name: 'batches',
    standard: 25,
    most: 100,
    insert: `insert into batches (id, account_id, name, foreground_color, background_color, total, failed, skipped)
             select uuidv7(), $1, name, '#000000', '#ffffff', 1, 0, 0 from unnest($3::text[]) name
             where $2::text is not null`,
    async read(account, _, page) {
      const { batches: items, nextCursor } = await internal(api.signpost, BatchesService, account).listBatches(page);
      return { items, nextCursor };
    },
  },
  {
    name: 'deliveries',
    standard: 25,
    most: 100,
    insert: `insert into webhook_deliveries (id, endpoint_id, account_id, event_id, event_type, body)
             select uuidv7(), $2::uuid, $1, uuidv7(), name, '{}' from unnest($3::text[]) name`,
    async prepare(account) {
      const { endpoint } = await webhooks(account).createEndpoint({
        url: 'https://hooks.example.com',
        events: ['qr.created'],
      });
      return endpoint?.id ?? '';
    },
    async read(account, endpointId, page) {
      const { deliveries: items, nextCursor } = await webhooks(account).listDeliveries({ endpointId, ...page });
      return { items, nextCursor };
    },
  },
  {
    name: 'accounts',
    standard: 100,
    most: 1_000,
    insert: `insert into accounts (id, name, plan) select uuidv7(), name, 'free' from unnest($3::text[]) name
             where $1::uuid is not null and $2::text is not null`,
    async read(_, __, page) {
      const { accounts: items, nextCursor } = await accounts().listAccounts(page);
      return { items, nextCursor };
    },
  },
];

describe.each(LISTS)('the list of $name', ({ insert, prepare, read, standard, most }) => {
  async function newList() {
    const { id: account } = await api.account();
    const made = (await prepare?.(account)) ?? '';
    const uuid = decodeId('acct', account);
    return {
      read: (page: { limit?: number; cursor?: string } = {}) => read(account, made, page),
      add: (names: readonly string[]) => pool.query(insert, [uuid, decodeId('hook', made) ?? made, names]),
    };
  }
  const newNames = (count: number) => Array.from({ length: count }, newUuid);
  const name = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 });

  test('paging by cursor returns every item exactly once, in order, whatever is created meanwhile', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(name, { maxLength: 30, selector: (each) => each.normalize('NFKC').toLowerCase() }),
        fc.integer({ min: 1, max: 12 }),
        fc.array(fc.nat(3), { maxLength: 10 }),
        async (names, limit, created) => {
          const list = await newList();
          // Invalid names are rejected before.
          await list.add(names.map((each, n) => `${n % 2}${each.replaceAll(/\p{Cc}/gu, '·')}${n}`));
          const before = (await list.read({ limit: most })).items.map(({ id }) => id);
          const walked: string[] = [];
          let cursor: string | undefined;
          for (let page = 0; page === 0 || cursor !== undefined; page++) {
            const { items, nextCursor } = await list.read({ limit, ...(cursor === undefined ? {} : { cursor }) });
            expect(items.length).toBeLessThanOrEqual(limit);
            walked.push(...items.map(({ id }) => id));
            cursor = nextCursor;
            if (walked.length < before.length) await list.add(newNames(created[page] ?? 0));
          }
          expect(new Set(walked).size).toBe(walked.length);
          const throughout = new Set(before);
          expect(walked.filter((id) => throughout.has(id))).toEqual(before);
        },
      ),
      { numRuns: 12, interruptAfterTimeLimit: 40_000 },
    );
  }, 120_000);

  test('a page has the requested number of items, up to the maximum', async () => {
    const list = await newList();
    await list.add(newNames(most + 1));
    for (const [limit, length] of [
      [undefined, standard],
      [0, 1],
      [2, 2],
      [most + 1, most],
    ] as const) {
      const { items, nextCursor } = await list.read(limit === undefined ? {} : { limit });
      expect([limit, items.length, nextCursor]).toEqual([limit, length, expect.any(String)]);
    }
  });

  test('a cursor that was not issued for it is an error that says so', async () => {
    const [list, other] = [await newList(), await newList()];
    for (const each of [list, other]) await each.add(newNames(3));
    const { nextCursor = '' } = await list.read({ limit: 1 });
    const id = Buffer.from(newUuid()).toString('base64url');
    for (const cursor of ['', 'x', id, `${nextCursor}x`, nextCursor.slice(1), encodeId('tag', newUuid())]) {
      const error = await list.read({ cursor }).catch((thrown: unknown) => thrown);
      expect([cursor, readFailure(error)]).toMatchObject([
        cursor,
        { reason: 'INVALID_CURSOR', message: 'cursor: was not issued by this service for this list.' },
      ]);
    }
  });
});

test('a cursor of one account or list is rejected by every other one', async () => {
  const [one, two] = [await api.account(), await api.account()];
  for (const { id } of [one, two]) {
    for (const list of LISTS.slice(0, 3)) {
      await pool.query(list.insert, [decodeId('acct', id), '', ['a', 'b', 'c']]);
    }
  }
  const [folders, tags, audit] = LISTS;
  for (const from of [folders, tags, audit]) {
    const { nextCursor: cursor = '' } = (await from?.read(one.id, '', { limit: 1 })) ?? {};
    for (const [to, account] of [
      [folders, one],
      [tags, one],
      [audit, one],
      [from, two],
    ] as const) {
      if (to === from && account === one) continue;
      const error = await to?.read(account.id, '', { cursor }).catch((thrown: unknown) => thrown);
      expect(readFailure(error).reason).toBe('INVALID_CURSOR');
    }
  }
});
