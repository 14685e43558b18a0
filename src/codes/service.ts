import { create } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import { decodeId } from '../../common/contract/ids.ts';
import {
  CodesService,
  CreateCodeResponseSchema,
  CreateLandingPageCodeResponseSchema,
  CreateStaticCodeResponseSchema,
  UpdateOutcome,
} from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { authorOf, recordChange, recordChanges, recordIfByService } from '../access/audit.ts';
import { transactionOf } from '../access/call-transaction.ts';
import { accountOf } from '../access/caller.ts';
import { once } from '../access/idempotency/once.ts';
import type { Cursors } from '../calls/cursors.ts';
import type { Database } from '../db/database.ts';
import { entityManagerIn } from '../db/orm-transaction.ts';
import { scannedCodeFrom } from './code-row.ts';
import { createCode, readNewCode } from './create/create-code.ts';
import { createInGroups } from './create/create-in-groups.ts';
import { createLandingPageCode, createStaticCode } from './create/create-non-dynamic-code.ts';
import { deleteCode } from './delete/delete-code.ts';
import { restoreCode } from './delete/restore-code.ts';
import type { IsPlatformHost } from './fields/platform-hosts.ts';
import { codeRows, findInGroups } from './find-code.ts';
import { listCodes } from './list/list-codes.ts';
import { updateCode } from './update/update-code.ts';
import { updateCodes } from './update/update-codes.ts';
import { updateInGroups } from './update/update-in-groups.ts';

/** Codes of an account. `platformUrl`: start of scan URLs on the platform's host. */
export function codesService(options: {
  database: Database;
  platformUrl: string;
  isPlatformHost: IsPlatformHost;
  cursors: Cursors;
}): ServiceImpl<typeof CodesService> {
  const { platformUrl, isPlatformHost } = options;
  const { orm, pool } = options.database;
  const findInGroup = findInGroups(pool);
  const createInGroup = createInGroups({ pool, platformUrl, isPlatformHost });
  const updateInGroup = updateInGroups({ pool, platformUrl, isPlatformHost, findCode: findInGroup });
  return {
    async createCode(request, context) {
      const account = accountOf(context);
      const call = { pool, accountId: account.id, context, method: CodesService.method.createCode, request };
      // Concurrent calls share a statement (docs/decisions/2026-11-23-grouped-statements.md). It leaves out what could
      // fail or wait; that gets a transaction of its own.
      const createdInGroup = await createInGroup(call);
      if (createdInGroup) return createdInGroup;
      return once(call, async (tx) => {
        const newCode = await readNewCode(tx, isPlatformHost, account, request);
        const created = await createCode(tx, platformUrl, account, newCode);
        await recordIfByService(tx, context, created.code.id);
        return create(CreateCodeResponseSchema, created);
      });
    },
    createStaticCode(request, context) {
      const accountId = accountOf(context).id;
      const call = { pool, accountId, context, method: CodesService.method.createStaticCode, request };
      return once(call, async (tx) => {
        const created = await createStaticCode(entityManagerIn(orm, tx), platformUrl, accountId, request);
        await recordChange(tx, context, created.code.id);
        return create(CreateStaticCodeResponseSchema, created);
      });
    },
    createLandingPageCode(request, context) {
      const accountId = accountOf(context).id;
      const call = { pool, accountId, context, method: CodesService.method.createLandingPageCode, request };
      return once(call, async (tx) => {
        const created = await createLandingPageCode(entityManagerIn(orm, tx), platformUrl, accountId, request);
        await recordChange(tx, context, created.code.id);
        return create(CreateLandingPageCodeResponseSchema, created);
      });
    },
    async getCode({ id }, context) {
      return { code: scannedCodeFrom(await findInGroup(accountOf(context).id, id), platformUrl) };
    },
    async batchGetCodes({ ids }, context) {
      const uuids = ids.map((id) => decodeId('qr', id)).filter((uuid) => uuid !== undefined);
      const rows = await codeRows(pool, accountOf(context).id, uuids);
      const live = rows.filter(({ deleted_at }) => deleted_at === null);
      return { codes: live.map((row) => scannedCodeFrom(row, platformUrl)) };
    },
    listCodes: (request, context) => listCodes({ ...options, pool }, accountOf(context).id, request),
    async updateCode(request, context) {
      // As for new codes.
      const updatedInGroup = await updateInGroup(request, context);
      if (updatedInGroup) return updatedInGroup;
      return transactionOf(context, pool, async (tx) => {
        const updated = await updateCode(tx, options, accountOf(context).id, request, authorOf(context));
        if (updated.changed) await recordIfByService(tx, context, request.id);
        return { code: updated.code, route: updated.route };
      });
    },
    deleteCode: ({ id }, context) =>
      transactionOf(context, pool, async (tx) => {
        const deleted = await deleteCode(tx, platformUrl, accountOf(context).id, id);
        await recordIfByService(tx, context, id);
        return deleted;
      }),
    restoreCode: ({ id }, context) =>
      transactionOf(context, pool, async (tx) => {
        const { code, changed: restored } = await restoreCode(tx, platformUrl, accountOf(context), id);
        if (restored) await recordChange(tx, context, id);
        return { code };
      }),
    updateCodes: (request, context) =>
      transactionOf(context, pool, async (tx) => {
        const results = await updateCodes(tx, platformUrl, accountOf(context), request);
        const changed = results.filter(({ outcome }) => outcome === UpdateOutcome.CHANGED);
        if (changed.length > 0) await recordChanges(tx, context, [...new Set(changed.map(({ id }) => id))]);
        return { results };
      }),
  };
}
