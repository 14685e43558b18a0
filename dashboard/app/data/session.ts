import { Code, ConnectError } from '@connectrpc/connect';
import { queryOptions, useSuspenseQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { loadFirstMessages } from '../messages/index.ts';
import { setServerTime } from './clock.ts';
import { discardEntered } from './entered.ts';
import { language } from './preferences.ts';
import { showToast } from './toasts.ts';

/** Roles of members, from the least to the most. */
export const ROLES = ['viewer', 'editor', 'admin', 'owner'] as const;
export type RoleName = (typeof ROLES)[number];

/** The person who is signed in, as `GET /session` describes them. */
export interface Session {
  readonly email: string;
  readonly name: string | null;
  readonly account: { readonly id: string; readonly name: string };
  readonly member: { readonly id: string; readonly role: RoleName };
  readonly accounts: readonly { readonly id: string; readonly name: string; readonly role: RoleName }[];
  /** The origin of scan URLs on the platform's own host. */
  readonly publicUrl: string;
}

/** No one is signed in. `signIn` lists the ways to do it: `oidc`, or empty if only links work. */
export interface SignedOut {
  readonly signIn: readonly string[];
}

/** The last session that was read: of the account and the person that the page shows. */
let shown: Session | undefined;

export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: async ({ signal }): Promise<Session | SignedOut> => {
    const response = await fetch('/session', { signal }).catch((error: unknown) => {
      throw ConnectError.from(error);
    });
    setServerTime(response);
    if (response.status >= 500) throw new ConnectError(`GET /session: ${response.status}`, Code.Unavailable);
    if (!response.ok && response.status !== 401) throw new Error(`The session could not be read: ${response.status}.`);
    const session = (await response.json()) as Session | SignedOut;
    if (isSignedOut(session)) return session;
    // In another tab another account was opened, or another person has signed in; or this one has left the account.
    if (shown && (session.account.id !== shown.account.id || session.member.id !== shown.member.id)) void openAnew();
    else shown = session;
    return session;
  },
  // Without it there is no page, so a failure is shown at once, with a way to try again.
  retry: false,
  // After a sign-in in another tab, this one shows it as soon as the person comes back to it.
  staleTime: ({ state }) => (state.data && isSignedOut(state.data) ? 0 : 60_000),
});

/** The session of a page; of one that is kept while no one is signed in, the one that has ended. */
export function useSession(): Session {
  const { data } = useSuspenseQuery(sessionQuery);
  if (!isSignedOut(data)) return data;
  if (!shown) throw new Error('No one is signed in.');
  return shown;
}

/** Whether the person may do what `role` may. */
export function useMay(role: RoleName): boolean {
  return ROLES.indexOf(useSession().member.role) >= ROLES.indexOf(role);
}

/**
 * The same for a form, which is kept with what was entered when the role is lowered: the core says so when it is sent.
 */
export function useMayEnter(role: RoleName): boolean {
  const may = useMay(role);
  const [mightAtFirst] = useState(may);
  return may || mightAtFirst;
}

export function isSignedOut(session: Session | SignedOut): session is SignedOut {
  return 'signIn' in session;
}

/**
 * The session whose account and person the page shows, also after it has ended; undefined before the first one. Neither
 * changes until `openAnew`.
 */
export function shownSession(): Session | undefined {
  return shown;
}

/**
 * How long leaving a page may take, in ms. After that the person has chosen to stay, when asked about what was entered.
 */
const LEAVE_MS = 5_000;

let opening: Promise<void> | undefined;

/**
 * Loads everything anew: what the pages have loaded is of another account or person. Resolves if the person has chosen
 * to stay.
 */
export function openAnew(): Promise<void> {
  // Several calls may find out at the same time.
  if (!opening) {
    opening = new Promise<void>((resolve) => setTimeout(resolve, LEAVE_MS)).finally(() => {
      opening = undefined;
    });
    // It asks about what was entered, if at all, before it returns.
    location.assign('/');
  }
  return opening;
}

/** Whether `openAnew` is about to leave the page. */
export function isOpeningAnew(): boolean {
  return opening !== undefined;
}

/** Opens another account of the person, without what was entered; a failure is shown. */
export function switchAccount(id: string): Promise<void> {
  const headers = { 'content-type': 'application/json' };
  return changeSession('/session/account', { method: 'POST', headers, body: JSON.stringify({ id }) });
}

/** Ends the session, and gives up what was entered; a failure is shown. */
export function signOut(): Promise<void> {
  return changeSession('/session', { method: 'DELETE' });
}

async function changeSession(path: string, init: RequestInit): Promise<void> {
  const response = await fetch(path, init).catch(() => undefined);
  // A session that has ended meanwhile is shown as such.
  if (response?.ok || response?.status === 401) {
    discardEntered();
    return openAnew();
  }
  const { common } = await loadFirstMessages(language());
  const removed = response?.status === 403 ? common.reasons.NOT_A_MEMBER?.({}) : undefined;
  showToast(removed ?? common.unavailable, { kind: 'failed' });
}
