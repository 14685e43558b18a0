import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { type Member, MemberSchema, Role } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { encodeId } from '../contract/ids.ts';

const ROLES = { owner: Role.OWNER, admin: Role.ADMIN, editor: Role.EDITOR, viewer: Role.VIEWER } as const;
type RoleName = keyof typeof ROLES;

/** A member of an account's team. */
export const MemberEntity = defineEntity({
  name: 'Member',
  tableName: 'members',
  properties: {
    id: p.uuid().primary(),
    accountId: p.uuid(),
    /** Unique in the account without regard to case. */
    email: p.text(),
    role: p.text().$type<RoleName>(),
    createdAt: p.datetime().onCreate(() => new Date()),
  },
});

export type MemberEntity = InferEntity<typeof MemberEntity>;

/** The role's name in the database; the constraint on the request leaves no other value. */
export function roleName(role: Role): RoleName {
  const found = (Object.keys(ROLES) as RoleName[]).find((name) => ROLES[name] === role);
  if (found === undefined) throw new TypeError(`role ${role} has no name`);
  return found;
}

/** The member as the contract has it. */
export function memberMessage({ id, email, role, createdAt }: MemberEntity): Member {
  return create(MemberSchema, {
    id: encodeId('mbr', id),
    email,
    role: ROLES[role],
    createdAt: timestampFromDate(createdAt),
  });
}
