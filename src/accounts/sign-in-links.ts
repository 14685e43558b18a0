import { hash, randomBytes } from 'node:crypto';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import { defineEntity, p } from '@mikro-orm/core';
import type { Pool } from 'pg';
import { failure } from '../../common/contract/errors.ts';
import { encodeId } from '../../common/contract/ids.ts';
import { first, run, statement } from '../../common/postgres/sql.ts';
import type { AccountsService } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { recordChange } from '../access/audit.ts';
import { transactionOf } from '../access/call-transaction.ts';
import { accountOf } from '../access/caller.ts';
import { accountOfRow } from '../access/entities.ts';
import { isAddress, MEMBERSHIP, MemberEntity, type MembershipRow, membershipMessage } from './member.ts';

/**
 * A link by which a member may sign in to the dashboard once. A member has at most one; it is deleted with the member.
 */
export const SignInLinkEntity = defineEntity({
  name: 'SignInLink',
  tableName: 'sign_in_links',
  properties: {
    memberId: p
      .manyToOne(MemberEntity)
      .mapToPk()
      .fieldName('member_id')
      .foreignKeyName('sign_in_links_member_id_fkey')
      .updateRule('no action')
      .deleteRule('cascade')
      .primary(),
    accountId: accountOfRow('sign_in_links'),
    /** SHA-256 of the token, which is kept nowhere. */
    hash: p.blob().unique('sign_in_links_hash_key'),
    expiresAt: p.datetime().index('sign_in_links_expiry'),
  },
});

/** Locks the member, whom another transaction may be removing. Index: members_email. */
const insert = statement<{ member_id: string; expires_at: Date }>(
  'accounts_create_sign_in_link',
  `insert into sign_in_links (member_id, account_id, hash, expires_at)
   select id, account_id, $3, now() + interval '15 minutes' from members
   where account_id = $1 and ${isAddress('email', '$2')} for key share
   on conflict (member_id) do update set hash = excluded.hash, expires_at = excluded.expires_at
   returning member_id, expires_at`,
);

/**
 * Of concurrent statements one deletes the row; the others wait for it and find nothing. Index: sign_in_links_hash_key.
 */
const redeem = statement<MembershipRow>(
  'accounts_redeem_sign_in_link',
  `delete from sign_in_links l using members m, accounts a
   where l.hash = $1 and l.expires_at > now() and m.id = l.member_id and m.account_id = l.account_id
     and a.id = l.account_id and a.closed_at is null
   returning ${MEMBERSHIP}`,
);

/** Index: sign_in_links_expiry. */
const deleteExpired = statement(
  'accounts_delete_expired_sign_in_links',
  'delete from sign_in_links where expires_at <= now()',
);

/**
 * The methods about sign-in links. A token has 256 random bits and is looked up by its hash, so the timing of a look-up
 * reveals nothing about it.
 */
export function signInLinks(
  pool: Pool,
): Pick<ServiceImpl<typeof AccountsService>, 'createSignInLink' | 'redeemSignInLink'> {
  return {
    async createSignInLink({ email }, context) {
      const { id: accountId } = accountOf(context);
      const token = randomBytes(32).toString('base64url');
      return transactionOf(context, pool, async (tx) => {
        const link = await first(tx, insert, [accountId, email, hashOf(token)]);
        if (!link) throw failure('NOT_FOUND', 'No member of this account has this e-mail address.');
        await recordChange(tx, context, encodeId('mbr', link.member_id));
        return { token, expiresAt: timestampFromDate(link.expires_at) };
      });
    },
    async redeemSignInLink({ token }, context) {
      return transactionOf(context, pool, async (tx) => {
        const row = await first(tx, redeem, [hashOf(token)]);
        if (!row) throw failure('NOT_FOUND', 'This sign-in link is invalid, expired or used.');
        await recordChange(tx, context, encodeId('mbr', row.id), row.account_id);
        return { membership: membershipMessage(row) };
      });
    },
  };
}

/** Deletes the links that have expired. */
export async function deleteExpiredLinks(pool: Pool): Promise<void> {
  await run(pool, deleteExpired);
}

function hashOf(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}
