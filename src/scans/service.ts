import type { ServiceImpl } from '@connectrpc/connect';
import { encodeId } from '../../common/contract/ids.ts';
import type { Log } from '../../common/log/log.ts';
import type { ScansService } from '../../proto/gen/signpost/scans/v1/scans_pb.ts';
import { recordChange } from '../access/audit.ts';
import { transactionOf } from '../access/call-transaction.ts';
import { accountOf } from '../access/caller.ts';
import type { Database } from '../db/database.ts';
import { finishDeletion, requestDeletion } from './delete-account-scans.ts';
import { auditScans, type Difference } from './ledger/audit-scans.ts';
import { waitingRecords } from './ledger/ledger.ts';
import { parseWindow } from './reports/window.ts';

/** Audit and deletion of scans, for internal services. */
export function scansService({
  database,
  log,
  archiveFolder,
}: {
  readonly database: Database;
  readonly log: Log;
  readonly archiveFolder: string;
}): ServiceImpl<typeof ScansService> {
  return {
    async auditScans(request, { signal }) {
      const { ledger, rows, archived, counted, differences } = await auditScans(database, parseWindow(request), signal);
      const waiting = await waitingRecords(database.pool, log);
      return {
        answered: BigInt(ledger.answered),
        spooled: BigInt(ledger.spooled),
        published: BigInt(ledger.published),
        recorded: BigInt(ledger.recorded),
        duplicates: BigInt(ledger.duplicates),
        deadLettered: BigInt(ledger.dead_lettered),
        deleted: BigInt(ledger.deleted),
        waiting: BigInt(waiting),
        rows: BigInt(rows),
        archived: BigInt(archived),
        counted: BigInt(counted),
        differences: differences.map(differenceMessage),
      };
    },

    async deleteAccountScans(_, context) {
      const { id } = accountOf(context);
      await transactionOf(context, database.pool, async (tx) => {
        await recordChange(tx, context, encodeId('acct', id));
        await requestDeletion(tx, id);
      });
      await finishDeletion(database.pool, archiveFolder, id);
      return {};
    },
  };
}

function differenceMessage({ code_id, day, counter, expected, counted }: Difference) {
  return {
    ...(code_id !== null && { codeId: encodeId('qr', code_id) }),
    ...(day !== null && { day }),
    counter,
    expected: BigInt(expected),
    counted: BigInt(counted),
  };
}
