import { create } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import { encodeId } from '../../../common/contract/ids.ts';
import { ChangeTargetsResponseSchema, TargetsService } from '../../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { isOpen } from '../../access/account-is-open.ts';
import { recordIfByService } from '../../access/audit.ts';
import { accountOf } from '../../access/caller.ts';
import { once } from '../../access/idempotency/once.ts';
import { costOfRows, refundIfExhausted } from '../../access/usage.ts';
import type { Cursors } from '../../calls/cursors.ts';
import type { IsPlatformHost } from '../../codes/fields/platform-hosts.ts';
import type { Database } from '../../db/database.ts';
import { type FollowedWork, isCompleted, type RequestWindow, type Watch } from '../../jobs/progress.ts';
import { schedule } from '../../jobs/task.ts';
import { TARGET_CHANGE_TASK } from './apply.ts';
import type { TargetChangeEntity } from './entities.ts';
import { changeMessage, findChange, getTargetChange, listTargetChanges } from './read.ts';
import { stage } from './stage.ts';

/** The methods that change many targets at once. */
type Methods = Pick<
  ServiceImpl<typeof TargetsService>,
  'changeTargets' | 'getTargetChange' | 'listTargetChanges' | 'watchTargetChange'
>;

function changeTargetsResponse(change: TargetChangeEntity) {
  return create(ChangeTargetsResponseSchema, { change: changeMessage(change) });
}

/** Changes of many of an account's targets. */
export function targetChangeMethods(options: {
  readonly database: Database;
  readonly isPlatformHost: IsPlatformHost;
  readonly cursors: { readonly byId: Cursors; readonly byName: Cursors };
  readonly window: RequestWindow;
  readonly watch: Watch;
}): Methods {
  const { database, cursors, window, watch } = options;
  const { orm, pool } = database;
  const followed = (accountId: string, id: string): FollowedWork<TargetChangeEntity> => ({
    read: () => findChange(orm.em.fork(), accountId, id),
    isOpen: () => isOpen(pool, accountId),
  });

  return {
    async changeTargets(request, context) {
      const { id: accountId } = accountOf(context);
      const closes = window.closes(context);
      const { method } = TargetsService;
      const cost = costOfRows(request.rows.length);
      const call = { pool, accountId, context, method: method.changeTargets, request, cost };
      let staged: TargetChangeEntity | undefined;
      const change = once(
        call,
        async (tx) => {
          staged = await stage(options, tx, context, request);
          const id = encodeId('change', staged.id);
          if (!staged.dryRun) await recordIfByService(tx, context, id);
          if (!isCompleted(staged)) await schedule(tx, TARGET_CHANGE_TASK, staged.id);
          return changeTargetsResponse(staged);
        },
        async (stored) => {
          if (!staged) return stored;
          const work = followed(accountId, encodeId('change', staged.id));
          return changeTargetsResponse(await window.wait(staged, work, closes, context));
        },
      );
      return refundIfExhausted(pool, context, change);
    },
    getTargetChange: (request, context) => getTargetChange(database, cursors.byName, accountOf(context).id, request),
    listTargetChanges: (request, context) => listTargetChanges(database, cursors.byId, accountOf(context).id, request),
    async *watchTargetChange({ id }, context) {
      const { id: accountId } = accountOf(context);
      for await (const change of watch(accountId, followed(accountId, id), context.signal)) {
        yield { change: changeMessage(change) };
      }
    },
  };
}
