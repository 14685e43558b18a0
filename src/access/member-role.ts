import type { HandlerContext } from '@connectrpc/connect';
import type { Pool } from 'pg';
import { failure } from '../../common/contract/errors.ts';
import { decodeId } from '../../common/contract/ids.ts';
import type { RoleName } from '../../common/contract/names.ts';
import { first, promptStatement } from '../../common/postgres/sql.ts';
import { MemberRole } from '../../proto/gen/signpost/access/v1/requirements_pb.ts';
import { callerKey, type Member } from './caller.ts';

/** Each role includes those with a lower number. */
const LEVELS: Readonly<Record<RoleName, MemberRole>> = {
  viewer: MemberRole.VIEWER,
  editor: MemberRole.EDITOR,
  admin: MemberRole.ADMIN,
  owner: MemberRole.OWNER,
};

/** Index: members_pkey. */
const findMember = promptStatement<Member>(
  'access_find_member',
  'select email, role from members where id = $1 and account_id = $2',
);

/** Whether any role allows a method that needs `role`. */
export function isForMembers(role: MemberRole): boolean {
  return role >= MemberRole.VIEWER;
}

/**
 * The member that an internal caller names; fails with NOT_A_MEMBER unless the account has it, and with ROLE_REQUIRED
 * unless its role includes `role`. `named`: `mbr_…`, as received. `accountId`: UUID.
 */
export async function memberWithRole(pool: Pool, accountId: string, named: string, role: MemberRole): Promise<Member> {
  const id = decodeId('mbr', named);
  const member = id === undefined ? undefined : await first(pool, findMember, [id, accountId]);
  if (!member) {
    throw failure('NOT_A_MEMBER', 'Name a member of this account in `signpost-member`, mbr_…, or none.');
  }
  expectLevel(member, role);
  return member;
}

/** Fails with ROLE_REQUIRED if the call is a member's who is not an owner. */
export function expectOwner(context: HandlerContext): void {
  const caller = context.values.get(callerKey);
  if (caller.kind === 'service' && caller.member) expectLevel(caller.member, MemberRole.OWNER);
}

function expectLevel(member: Member, needed: MemberRole): void {
  if (LEVELS[member.role] >= needed) return;
  const role = Object.keys(LEVELS).find((name) => LEVELS[name as RoleName] === needed) ?? '';
  throw failure('ROLE_REQUIRED', `This needs the role ${role}; the member is ${member.role}.`, { role });
}
