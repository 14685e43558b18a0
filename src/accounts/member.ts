import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { encodeId } from '../../common/contract/ids.ts';
import { ROLE_BY_NAME, type RoleName } from '../../common/contract/names.ts';
import { type Member, MemberSchema } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { accountOfRow } from '../access/entities.ts';

/** A member of an account's team. */
export const MemberEntity = defineEntity({
  name: 'Member',
  tableName: 'members',
  properties: {
    id: p.uuid().primary(),
    accountId: accountOfRow('members').deleteRule('cascade'),
    /** Unique in the account, regardless of case. */
    email: p.text(),
    role: p.text().$type<RoleName>().check(`role in ('owner', 'admin', 'editor', 'viewer')`),
    createdAt: p
      .datetime()
      .onCreate(() => new Date())
      .defaultRaw('now()'),
  },
  indexes: [
    {
      name: 'members_email',
      expression: `create unique index members_email on members (account_id, lower(email collate "pg_c_utf8"))`,
    },
  ],
});

export type MemberEntity = InferEntity<typeof MemberEntity>;

/** The member as a message of the RPC API. */
export function memberMessage({ id, email, role, createdAt }: Omit<MemberEntity, 'accountId'>): Member {
  return create(MemberSchema, {
    id: encodeId('mbr', id),
    email,
    role: ROLE_BY_NAME[role],
    createdAt: timestampFromDate(createdAt),
  });
}
