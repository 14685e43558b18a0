import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { encodeId } from '../../common/contract/ids.ts';
import { ROLE_BY_NAME, type RoleName } from '../../common/contract/names.ts';
import {
  type Member,
  MemberSchema,
  type Membership,
  MembershipSchema,
} from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { accountOfRow } from '../access/entities.ts';

/** The SQL expression by which e-mail addresses are compared. `email`: an expression. */
const folded = (email: string) => `lower(${email} collate "pg_c_utf8")`;

const FOLDED_EMAIL = folded('email');

/**
 * Whether a member's address is the one that a caller names, regardless of case, in SQL; both are expressions. Members'
 * are ASCII. Of the named one only ASCII is folded: `İ` and the Kelvin sign would become letters of another person's
 * address.
 */
export const isAddress = (email: string, named: string) =>
  `${folded(email)} = lower(${named} collate "C") collate "pg_c_utf8"`;

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
    createdAt: p.datetime().defaultRaw('now()'),
  },
  indexes: [
    {
      name: 'members_email',
      expression: `create unique index members_email on members (account_id, ${FOLDED_EMAIL})`,
    },
    // Of all accounts: the memberships of one person, newest first.
    { name: 'members_by_email', expression: `create index members_by_email on members (${FOLDED_EMAIL}, id)` },
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

/** A member with its account, as statements return it. */
export interface MembershipRow {
  readonly id: string;
  readonly email: string;
  readonly role: RoleName;
  readonly created_at: Date;
  readonly account_id: string;
  readonly account_name: string;
}

/** The columns of `MembershipRow`, of `members m` and `accounts a`. */
export const MEMBERSHIP = 'm.id, m.email, m.role, m.created_at, m.account_id, a.name as account_name';

/** The membership as a message of the RPC API. */
export function membershipMessage(row: MembershipRow): Membership {
  return create(MembershipSchema, {
    accountId: encodeId('acct', row.account_id),
    accountName: row.account_name,
    member: memberMessage({ ...row, createdAt: row.created_at }),
  });
}
