import type { Pool } from 'pg';
import { LONG_PAGE_LIMIT } from '../../common/contract/ranges.ts';
import { run, statement } from '../../common/postgres/sql.ts';
import type { ListMembershipsRequest } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import type { Cursors } from '../calls/cursors.ts';
import { pageById } from '../calls/paging.ts';
import { isAddress, MEMBERSHIP, type MembershipRow, membershipMessage } from './member.ts';

/**
 * Memberships in all accounts, as the answer says which of them a person may enter; only internal services without an
 * account may ask. Index: members_by_email.
 */
const list = statement<MembershipRow>(
  'accounts_list_memberships',
  `select ${MEMBERSHIP} from members m join accounts a on a.id = m.account_id and a.closed_at is null
   where ${isAddress('m.email', '$1')} and m.id < $2 order by m.id desc limit $3`,
);

/** A page of the memberships of an e-mail address in open accounts, newest first. */
export async function listMemberships(
  { pool, cursors }: { pool: Pool; cursors: Cursors },
  request: ListMembershipsRequest,
) {
  // As `isAddress` compares it.
  const folded = request.email.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  const { before, limit, end } = pageById([cursors, `memberships ${folded}`], request, LONG_PAGE_LIMIT);
  const { items, next } = end(await run(pool, list, [request.email, before, limit]));
  return { memberships: items.map(membershipMessage), ...next };
}
