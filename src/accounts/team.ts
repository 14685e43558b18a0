import type { ServiceImpl } from '@connectrpc/connect';
import { UniqueConstraintViolationException } from '@mikro-orm/core';
import { failure } from '../../common/contract/errors.ts';
import { decodeId, newUuid } from '../../common/contract/ids.ts';
import { expectBelowLimit } from '../../common/contract/limits.ts';
import { nameOf, ROLE_BY_NAME } from '../../common/contract/names.ts';
import type { AccountsService } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { recordChange } from '../access/audit.ts';
import { accountOf } from '../access/caller.ts';
import { ormTransactionOf } from '../access/commit-limit.ts';
import { lockAccount } from '../access/lock-account.ts';
import type { Database } from '../db/database.ts';
import { connectionOf } from '../db/orm-transaction.ts';
import { memberAdded, memberRemoved } from '../events/events.ts';
import { MemberEntity, memberMessage } from './member.ts';

/** The methods about an account's team. */
export function team({
  orm,
}: Database): Pick<ServiceImpl<typeof AccountsService>, 'addMember' | 'removeMember' | 'listMembers'> {
  return {
    async addMember({ email, role }, context) {
      const { id: accountId } = accountOf(context);
      const member = await ormTransactionOf(context, orm, async (em) => {
        await lockAccount(connectionOf(em), accountId);
        expectBelowLimit('members', await em.count(MemberEntity, { accountId }));
        const roleName = nameOf(ROLE_BY_NAME, role);
        const added = em.create(MemberEntity, { id: newUuid(), accountId, email, role: roleName });
        await em.flush();
        const message = memberMessage(added);
        await memberAdded(connectionOf(em), accountId, message);
        await recordChange(connectionOf(em), context, message.id);
        return message;
      }).catch((error: unknown) => {
        if (!(error instanceof UniqueConstraintViolationException)) throw error;
        throw failure('ALREADY_EXISTS', `${email} is already a member of this account.`);
      });
      return { member };
    },
    async removeMember(request, context) {
      const { id: accountId } = accountOf(context);
      const id = decodeId('mbr', request.id);
      const member = await ormTransactionOf(context, orm, async (em) => {
        const found = id === undefined ? null : await em.findOne(MemberEntity, { id, accountId });
        // The count of deleted rows decides: of two concurrent calls, one emits the event.
        if (!found || (await em.nativeDelete(MemberEntity, { id: found.id, accountId })) === 0) {
          throw failure('NOT_FOUND', 'There is no such member of this account.');
        }
        const message = memberMessage(found);
        await memberRemoved(connectionOf(em), accountId, message);
        await recordChange(connectionOf(em), context, message.id);
        return message;
      });
      return { member };
    },
    async listMembers(_, context) {
      const { id: accountId } = accountOf(context);
      const members = await orm.em.fork().find(MemberEntity, { accountId }, { orderBy: { email: 'asc' } });
      return { members: members.map(memberMessage) };
    },
  };
}

/** Deletes the whole team of a closed account, without events. `accountId`: UUID. */
export async function deleteMembers({ orm }: Database, accountId: string): Promise<void> {
  await orm.em.fork().nativeDelete(MemberEntity, { accountId });
}
