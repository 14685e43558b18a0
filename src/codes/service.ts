import { create } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import type { Pool } from 'pg';
import { CodesService, CreateCodeResponseSchema } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { accountOf } from '../access/caller.ts';
import { once } from '../access/idempotency.ts';
import { scanCounts } from '../scans/totals.ts';
import { codeFrom } from './code-row.ts';
import { createCode, readNewCode } from './create-code.ts';
import type { Cursors } from './cursor.ts';
import { deleteCode } from './delete-code.ts';
import { findCode } from './find-code.ts';
import { listCodes } from './list-codes.ts';
import { updateCode } from './update-code.ts';

type Implemented = 'createCode' | 'getCode' | 'listCodes' | 'updateCode' | 'deleteCode';

/** Codes of an account. `platformUrl`: what scan URLs on the platform's host start with. */
export function codesService(options: {
  pool: Pool;
  platformUrl: string;
  cursors: Cursors;
  /** Called after a change has committed: the outbox has something to carry. */
  changed(): void;
}): Pick<ServiceImpl<typeof CodesService>, Implemented> {
  const { pool, platformUrl, changed } = options;
  return {
    async createCode(request, context) {
      const account = accountOf(context);
      const call = { pool, accountId: account.id, context, method: CodesService.method.createCode, request };
      const response = await once(call, async (tx) => {
        const asked = await readNewCode(pool, platformUrl, account, request);
        return create(CreateCodeResponseSchema, await createCode(tx, platformUrl, account, asked));
      });
      changed();
      return response;
    },
    async getCode({ id }, context) {
      const { id: accountId } = accountOf(context);
      const row = await findCode(pool, accountId, id);
      const scans = await scanCounts(pool, accountId, [row.id]);
      return { code: codeFrom(row, platformUrl, scans.get(row.id) ?? 0) };
    },
    listCodes: (request, context) => listCodes(options, accountOf(context).id, request),
    async updateCode(request, context) {
      const response = await updateCode(pool, platformUrl, accountOf(context).id, request);
      changed();
      return response;
    },
    async deleteCode({ id }, context) {
      const response = await deleteCode(pool, platformUrl, accountOf(context).id, id);
      changed();
      return response;
    },
  };
}
