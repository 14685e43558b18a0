import type { ServiceImpl } from '@connectrpc/connect';
import type { Pool } from 'pg';
import { failure, isReason, REASONS } from '../../common/contract/errors.ts';
import { encodeId } from '../../common/contract/ids.ts';
import { AdmissionService } from '../../proto/gen/signpost/access/v1/admission_pb.ts';
import { accountOf } from './caller.ts';
import { isIdempotencyKey, once } from './idempotency.ts';

/** Statuses of the rejections that a gateway may make itself. */
const BAD_INPUT = new Set([400, 413]);

/**
 * Admits requests that a gateway answers or rejects itself: the interceptor has checked the call before it arrives
 * here.
 */
export function admissionService(pool: Pool): ServiceImpl<typeof AdmissionService> {
  return {
    admit: () => ({}),
    authenticate: (_request, context) => ({ accountId: encodeId('acct', accountOf(context).id) }),
    async refuse(request, context) {
      const { reason, message } = request;
      if (!isReason(reason) || !BAD_INPUT.has(REASONS[reason].http)) {
        throw failure('INVALID_FIELD', 'reason: must be a reason for bad input.');
      }
      const rejection = failure(reason, message);
      const key = context.requestHeader.get('idempotency-key');
      // A size limit is checked before the key, and a body that was not read has no fingerprint to store.
      const notRead = REASONS[reason].http === 413 || reason === 'REQUEST_TIMEOUT';
      const cannotStore =
        notRead && (!context.requestHeader.has('idempotency-fingerprint') || !isIdempotencyKey(key ?? ''));
      if (key === null || cannotStore) throw rejection;
      const call = { pool, accountId: accountOf(context).id, context, method: AdmissionService.method.refuse, request };
      return once(call, () => Promise.reject(rejection));
    },
  };
}
