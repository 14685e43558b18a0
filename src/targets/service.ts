import { toJson } from '@bufbuild/protobuf';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import type { PoolClient } from 'pg';
import { failure } from '../../common/contract/errors.ts';
import type { Queryable } from '../../common/postgres/sql.ts';
import { type Policy, PolicySchema } from '../../proto/gen/signpost/targets/v1/policy_pb.ts';
import type { TargetsService } from '../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { authorOf, recordIfByService } from '../access/audit.ts';
import { transactionOf } from '../access/call-transaction.ts';
import { accountOf } from '../access/caller.ts';
import type { Cursors } from '../calls/cursors.ts';
import { instantOrFailure } from '../calls/instants.ts';
import type { CodeRow } from '../codes/code-row.ts';
import type { IsPlatformHost } from '../codes/fields/platform-hosts.ts';
import { targetOrFailure } from '../codes/fields/target-url.ts';
import { findCode, lockCode } from '../codes/find-code.ts';
import type { StoredTarget } from '../codes/target-versions.ts';
import { changeLocked } from '../codes/update/update-code.ts';
import type { Database } from '../db/database.ts';
import type { RequestWindow, Watch } from '../jobs/progress.ts';
import { CODE_PROBLEMS } from './changes/find-codes.ts';
import { targetChangeMethods } from './changes/methods.ts';
import { policyOrFailure } from './policies.ts';
import { previewTarget } from './preview.ts';
import { findVersion, findVersionAt, listVersions, targetFrom } from './versions.ts';

/** A target as requested: what is absent stays as it is. */
interface RequestedTarget {
  readonly targetUrl?: string | undefined;
  readonly policy?: Policy | undefined;
}

/** Targets of an account's codes. `platformUrl`: start of scan URLs on the platform's host. */
export function targetsService(options: {
  readonly database: Database;
  readonly platformUrl: string;
  readonly isPlatformHost: IsPlatformHost;
  /** For lists sorted by ids, and for others. */
  readonly cursors: { readonly byId: Cursors; readonly byName: Cursors };
  readonly window: RequestWindow;
  readonly watch: Watch;
}): ServiceImpl<typeof TargetsService> {
  const { platformUrl, isPlatformHost, cursors } = options;
  const { pool } = options.database;

  /** Validates what the request contains. */
  async function readTarget(
    on: Queryable,
    accountId: string,
    { targetUrl, policy }: RequestedTarget,
  ): Promise<Partial<StoredTarget>> {
    const target: Partial<StoredTarget> = {};
    if (targetUrl !== undefined) target.target_url = await targetOrFailure(on, isPlatformHost, accountId, targetUrl);
    if (policy !== undefined) {
      const read = await policyOrFailure(on, isPlatformHost, accountId, policy);
      target.policy = read ? toJson(PolicySchema, read) : null;
    }
    return target;
  }

  async function findDynamic(context: HandlerContext, id: string): Promise<CodeRow> {
    const code = await findCode(pool, accountOf(context).id, id);
    expectDynamic(code);
    return code;
  }

  /** Changes the target of a code as one version, in a transaction. */
  function change(
    context: HandlerContext,
    { id, note, expectedVersion }: { id: string; note: string; expectedVersion?: number | undefined },
    newTarget: (tx: PoolClient, before: CodeRow) => Promise<Partial<StoredTarget>>,
  ) {
    return transactionOf(context, pool, async (tx) => {
      const before = await lockCode(tx, accountOf(context).id, id);
      expectDynamic(before);
      expectVersion(before, expectedVersion);
      const columns = await newTarget(tx, before);
      const version = { author: authorOf(context), note };
      const { row, changed } = await changeLocked(tx, platformUrl, before, { columns }, version);
      if (changed) await recordIfByService(tx, context, id);
      return { target: targetFrom(await findVersion(tx, row, row.target_version)) };
    });
  }

  return {
    ...targetChangeMethods(options),
    async setTarget(request, context) {
      const { targetUrl, policy } = request;
      if (targetUrl === undefined && policy === undefined) {
        throw failure('NO_FIELDS', 'Set at least one of target_url and policy.');
      }
      return change(context, request, (tx, before) => readTarget(tx, before.account_id, request));
    },
    async getTarget({ id }, context) {
      const code = await findDynamic(context, id);
      return { target: targetFrom(await findVersion(pool, code, code.target_version)) };
    },
    async listTargetVersions(request, context) {
      const { items, next } = await listVersions(pool, cursors.byName, await findDynamic(context, request.id), request);
      return { versions: items.map(targetFrom), ...next };
    },
    async getTargetAt({ id, at }, context) {
      const instant = instantOrFailure('at', at) ?? new Date();
      return { target: targetFrom(await findVersionAt(pool, await findDynamic(context, id), instant)) };
    },
    rollBackTarget: (request, context) =>
      change(context, request, async (tx, before) => {
        const version = targetFrom(await findVersion(tx, before, request.version));
        return { target_url: version.targetUrl, policy: null, ...(await readTarget(tx, before.account_id, version)) };
      }),
    async previewTarget(request, context) {
      instantOrFailure('at', request.at);
      const code = await findDynamic(context, request.id);
      return previewTarget(code, { ...code, ...(await readTarget(pool, code.account_id, request)) }, request);
    },
  };
}

/** Fails with NO_TARGET for codes of other types. */
function expectDynamic({ type }: CodeRow): void {
  if (type !== 'dynamic') throw failure('NO_TARGET', CODE_PROBLEMS.notDynamic);
}

/** Fails with TARGET_CHANGED if the code's target is not in the expected version; undefined expects none. */
function expectVersion({ target_version }: CodeRow, expected: number | undefined): void {
  if (expected === undefined || expected === target_version) return;
  const sentence = `The target is now at version ${target_version}, not at version ${expected}: read it and try again.`;
  throw failure('TARGET_CHANGED', sentence, { version: String(target_version) });
}
