import { queryOptions, useSuspenseQuery } from '@tanstack/react-query';

/** Roles of members, from the least to the most. */
export const ROLES = ['viewer', 'editor', 'admin', 'owner'] as const;
export type RoleName = (typeof ROLES)[number];

/** The person who is signed in, as `GET /session` describes them. */
export interface Session {
  readonly email: string;
  readonly name: string | null;
  readonly account: { readonly id: string; readonly name: string; readonly plan: string };
  readonly member: { readonly id: string; readonly role: RoleName };
  readonly accounts: readonly { readonly id: string; readonly name: string; readonly role: RoleName }[];
  /** The origin of scan URLs on the platform's own host. */
  readonly publicUrl: string;
}

/** No one is signed in. `signIn` lists the ways to do it: `oidc`, or empty if only links work. */
export interface SignedOut {
  readonly signIn: readonly string[];
}

export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: async ({ signal }): Promise<Session | SignedOut> => {
    const response = await fetch('/session', { signal });
    if (!response.ok && response.status !== 401) throw new Error(`The session could not be read: ${response.status}.`);
    return (await response.json()) as Session | SignedOut;
  },
  staleTime: 60_000,
});

/** The session of a page; pages are shown to people who are signed in. */
export function useSession(): Session {
  const { data } = useSuspenseQuery(sessionQuery);
  if (isSignedOut(data)) throw new Error('No one is signed in.');
  return data;
}

/** Whether the person may do what `role` may. */
export function useMay(role: RoleName): boolean {
  return ROLES.indexOf(useSession().member.role) >= ROLES.indexOf(role);
}

export function isSignedOut(session: Session | SignedOut): session is SignedOut {
  return 'signIn' in session;
}

/** Opens another account; everything on the pages is the previous one's, so they are loaded anew. */
export async function switchAccount(id: string): Promise<void> {
  await fetch('/session/account', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ id }),
  });
  location.assign('/');
}

export async function signOut(): Promise<void> {
  await fetch('/session', { method: 'DELETE' });
  location.assign('/');
}
