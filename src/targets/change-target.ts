import { isDeepStrictEqual } from 'node:util';
import { toJson } from '@bufbuild/protobuf';
import type { PoolClient } from 'pg';
import { failure } from '../../common/contract/errors.ts';
import { encodeId } from '../../common/contract/ids.ts';
import { run, statement } from '../../common/postgres/sql.ts';
import { type Policy, PolicySchema } from '../../proto/gen/signpost/targets/v1/policy_pb.ts';
import { announce } from '../codes/announce.ts';
import { CHANGED, type CodeRow, codeFrom } from '../codes/code-row.ts';
import { findCode } from '../codes/find-code.ts';
import { addTargetVersion, type ChangeOfTarget, type StoredTarget } from '../codes/target-versions.ts';
import { scanCounts } from '../scans/reports/scan-counts.ts';
import { CODE_PROBLEMS } from './changes/find-codes.ts';

/** Index: codes_pkey. */
const update = statement(
  'targets_update',
  `update codes set target_url = $3, policy = $4::jsonb, target_version = $5, ${CHANGED}
   where id = $1 and account_id = $2`,
);

/** Fails with NO_TARGET for codes of other types. */
export function expectDynamic({ type }: CodeRow): void {
  if (type !== 'dynamic') throw failure('NO_TARGET', CODE_PROBLEMS.notDynamic);
}

/** Fails with TARGET_CHANGED if the code's target is not in the expected version; undefined expects none. */
export function expectVersion({ target_version }: CodeRow, expected: number | undefined): void {
  if (expected === undefined || expected === target_version) return;
  const sentence = `The target is now at version ${target_version}, not at version ${expected}: read it and try again.`;
  throw failure('TARGET_CHANGED', sentence, { version: String(target_version) });
}

/** A policy as the columns store it. */
export function policyToStore(policy: Policy | undefined): StoredTarget['policy'] {
  return policy ? toJson(PolicySchema, policy) : null;
}

/**
 * Changes the target of a locked code, as a new version, and announces it. Returns the code as it is then; a target
 * that is as before changes nothing.
 */
export async function changeTarget(
  tx: PoolClient,
  platformUrl: string,
  before: CodeRow,
  target: StoredTarget,
  change: ChangeOfTarget,
): Promise<{ code: CodeRow; changed: boolean }> {
  const changed = [
    ...(target.target_url === before.target_url ? [] : ['target_url']),
    // Compared as values: `jsonb` does not keep the order of fields.
    ...(isDeepStrictEqual(target.policy, before.policy) ? [] : ['policy']),
  ];
  if (changed.length === 0) return { code: before, changed: false };
  const version = await addTargetVersion(tx, before, target, change);
  await run(tx, update, [before.id, before.account_id, target.target_url, target.policy, version]);
  const code = await findCode(tx, before.account_id, encodeId('qr', before.id));
  const scans = (await scanCounts(tx, code.account_id, [code.id])).get(code.id) ?? 0;
  await announce(tx, code, codeFrom(code, platformUrl, scans), { type: 'qr.updated', changed });
  return { code, changed: true };
}
