import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { UniqueConstraintViolationException } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { failure } from '../../common/contract/errors.ts';
import { decodeId, newUuid } from '../../common/contract/ids.ts';
import { expectBelowLimit } from '../../common/contract/limits.ts';
import { nameOf, ROLE_BY_NAME } from '../../common/contract/names.ts';
import { type AccountsService, Role } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { recordChange } from '../access/audit.ts';
import { ormTransactionOf } from '../access/call-transaction.ts';
import { accountOf } from '../access/caller.ts';
import { lockAccount } from '../access/lock-account.ts';
import { expectOwner } from '../access/member-role.ts';
import { notFound } from '../calls/not-found.ts';
import type { Database } from '../db/database.ts';
import { connectionOf } from '../db/orm-transaction.ts';
import { memberAdded, memberRemoved } from '../events/events.ts';
import { MemberEntity, memberMessage } from './member.ts';

/** The methods about an account's team. */
export function team({
  orm,
}: Database): Pick<ServiceImpl<typeof AccountsService>, 'addMember' | 'updateMember' | 'removeMember' | 'listMembers'> {
  return {
    async addMember({ email, role }, context) {
      if (role === Role.OWNER) expectOwner(context);
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
    async updateMember({ id, role }, context) {
      const roleName = nameOf(ROLE_BY_NAME, role);
      if (roleName === 'owner') expectOwner(context);
      const member = await ormTransactionOf(context, orm, async (em) => {
        const found = await lockedMember(em, context, id);
        if (roleName !== 'owner') await expectOtherOwner(em, context, found);
        await em.nativeUpdate(MemberEntity, { id: found.id, accountId: found.accountId }, { role: roleName });
        await recordChange(connectionOf(em), context, id);
        return memberMessage({ ...found, role: roleName });
      });
      return { member };
    },
    async removeMember({ id }, context) {
      const member = await ormTransactionOf(context, orm, async (em) => {
        const found = await lockedMember(em, context, id);
        await expectOtherOwner(em, context, found);
        const message = memberMessage(found);
        await em.nativeDelete(MemberEntity, { id: found.id, accountId: found.accountId });
        await memberRemoved(connectionOf(em), found.accountId, message);
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

/**
 * The member of the call's account with this id, `mbr_…`, under a lock on the account: of concurrent changes of a team,
 * each sees what the previous ones left. Fails with NOT_FOUND.
 */
async function lockedMember(em: EntityManager, context: HandlerContext, encoded: string): Promise<MemberEntity> {
  const { id: accountId } = accountOf(context);
  const id = decodeId('mbr', encoded);
  await lockAccount(connectionOf(em), accountId);
  const found = id === undefined ? null : await em.findOne(MemberEntity, { id, accountId });
  if (!found) throw notFound('member');
  return found;
}

/**
 * Fails if `member` is an owner whom the call must not change: with ROLE_REQUIRED if the call is a member's who is not
 * an owner, and with LAST_OWNER if the account has no other.
 */
async function expectOtherOwner(em: EntityManager, context: HandlerContext, member: MemberEntity): Promise<void> {
  if (member.role !== 'owner') return;
  expectOwner(context);
  if ((await em.count(MemberEntity, { accountId: member.accountId, role: 'owner' })) > 1) return;
  throw failure('LAST_OWNER', 'This is the last owner of the account; make another member an owner first.');
}

/** Deletes the whole team of a closed account, without events. `accountId`: UUID. */
export async function deleteAccountMembers({ orm }: Database, accountId: string): Promise<void> {
  await orm.em.fork().nativeDelete(MemberEntity, { accountId });
}
