import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import type { Pool } from 'pg';
import { failure, isReason, REASONS } from '../../common/contract/errors.ts';
import { encodeId } from '../../common/contract/ids.ts';
import { METADATA } from '../../common/contract/metadata.ts';
import {
  AdmissionService,
  type RefuseRequest,
  type RefuseResponse,
} from '../../proto/gen/signpost/access/v1/admission_pb.ts';
import { accountOf } from './caller.ts';
import { isIdempotencyKey, keyReused, once } from './idempotency/once.ts';
import { costOfRows, expectQuota, refundIfExhausted } from './usage.ts';

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
    refuse: (request, context) => refundIfExhausted(pool, context, refuse(pool, request, context)),
  };
}

/** Fails with the rejection in the request, or with an error that comes before it. */
async function refuse(pool: Pool, request: RefuseRequest, context: HandlerContext): Promise<RefuseResponse> {
  const { reason, message, rows } = request;
  if (!isReason(reason) || !BAD_INPUT.has(REASONS[reason].http)) {
    throw failure('INVALID_FIELD', 'reason: must be a reason for bad input.');
  }
  const rejection = failure(reason, message);
  const cost = Math.max(1, costOfRows(rows));
  const key = context.requestHeader.get(METADATA.idempotencyKey);
  // A size limit is checked before the key, and a body that was not read has no fingerprint to store.
  const notRead = REASONS[reason].http === 413 || reason === 'REQUEST_TIMEOUT';
  const cannotStore = notRead && (!context.requestHeader.has(METADATA.fingerprint) || !isIdempotencyKey(key ?? ''));
  if (key === null || cannotStore) {
    expectQuota(context, cost - 1);
    throw rejection;
  }
  const { method } = AdmissionService;
  const call = { pool, accountId: accountOf(context).id, context, method: method.refuse, request, cost };
  await once(call, () => Promise.reject(rejection));
  // What is stored is another method's response.
  throw keyReused();
}
