import { expect, test } from 'vitest';
import { newUuid } from '../../common/contract/ids.ts';
import { transaction } from '../../common/postgres/sql.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { codesServices, type Tenant } from './codes-services.fixture.ts';
import { createCodes } from './create/create-codes.ts';

const { createCode, createStaticCode, updateCode, updateCodes } = CodesService.method;
const TARGET = 'https://example.com/';
const codes = codesServices();

/** The id of a new code, with a tag. */
async function newCode(of: Tenant): Promise<string> {
  const { code } = await codes.call(createCode, { targetUrl: TARGET, tags: ['known'] }, { of });
  return code?.id ?? '';
}

/** Changes of the code `id` that name an unknown folder and a tag that exists. */
const changes: Record<string, (of: Tenant, id: string) => Promise<unknown>> = {
  CreateCode: (of) => codes.call(createCode, { targetUrl: TARGET, folder: 'new', tags: ['known'] }, { of }),
  CreateStaticCode: (of) => {
    const content = { case: 'payload', value: 'x' } as const;
    return codes.call(createStaticCode, { content, folder: 'new', tags: ['known'] }, { of });
  },
  UpdateCode: (of, id) => {
    const updateMask = { paths: ['folder', 'tags'] };
    return codes.call(updateCode, { id, updateMask, folder: 'new', tags: ['known'] }, { of });
  },
  'UpdateCodes, adding tags': (of, id) =>
    codes.call(updateCodes, { ids: [id], folder: 'new', addTags: ['known'] }, { of }),
  'UpdateCodes, removing tags': (of, id) =>
    codes.call(updateCodes, { ids: [id], folder: 'new', removeTags: ['known'] }, { of }),
  'a step of a batch': (of) => {
    const design = { foregroundColor: '#000000', backgroundColor: '#ffffff' };
    const shared = { accountId: of.id, domain: null, design, now: new Date() };
    const row = { targetUrl: TARGET, name: null, campaignType: null, folder: 'new', tags: ['known'] };
    return transaction(codes.pool(), (tx) =>
      createCodes(tx, 'https://go.example', shared, [{ id: newUuid(), ...row }]),
    );
  },
};

test.each(Object.keys(changes))(
  'while it waits for a tag, a transaction does not hold the account’s lock, for which holders of tags may wait: %s',
  async (name) => {
    const of = await codes.newTenant();
    const id = await newCode(of);
    const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    let change: Promise<unknown> | undefined;
    await transaction(codes.pool(), async (merge) => {
      await merge.query('select from tags where account_id = $1 for update', [of.id]);
      change = changes[name]?.(of, id);
      await expect.poll(async () => (await codes.pool().query(waiting)).rowCount).toBe(1);
      await merge.query('select from accounts where id = $1 for no key update nowait', [of.id]);
    });
    await change;
  },
);
