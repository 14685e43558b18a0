import type { Membership } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import type { Core } from './core.ts';
import type { Session } from './session.ts';

/** Memberships per page, the most that the core returns. */
const PAGE = 1_000;

/** The most memberships of one address that are considered. */
const MOST = 10_000;

/** The memberships of an address that belongs to the person who signs in, newest first. */
export async function membershipsOf(core: Core, email: string): Promise<readonly Membership[]> {
  const found: Membership[] = [];
  let cursor: string | undefined;
  do {
    const page = await core.accounts.listMemberships({ email, limit: PAGE, ...(cursor !== undefined && { cursor }) });
    found.push(...page.memberships);
    cursor = page.nextCursor;
  } while (cursor !== undefined && found.length < MOST);
  return found;
}

/**
 * The memberships that a session may use. A link proves only the membership that it was made for, not that the address
 * belongs to the person who opened it.
 */
export async function usableMemberships(core: Core, session: Session): Promise<readonly Membership[]> {
  const found = await membershipsOf(core, session.email);
  if (session.subject !== undefined) return found;
  return found.filter(({ accountId, member }) => accountId === session.account && member?.id === session.member);
}
