import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { encryptedCookies } from './cookies.ts';

/** How long a person may take at the provider, in s. */
const SIGN_IN_S = 10 * 60;

/**
 * The most sign-ins that a browser may have begun; another one replaces the oldest. Their cookies, of up to 2 KB each,
 * and that of the session must fit into a header of 8 KB, the most that many proxies accept.
 */
const MAX_PENDING = 3;

const SIGN_IN = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  /** The address to lead to. */
  to: z.string(),
  /** `acct_…`: the account to open, if the person is a member of it. */
  account: z.string().optional(),
});

/** A sign-in that was begun: what its callback is checked against, and where it leads. */
export type SignIn = Readonly<z.infer<typeof SIGN_IN>>;

/**
 * The sign-ins that a browser has begun at the provider. Each has a cookie, since two tabs may sign in at the same
 * time.
 */
export function pendingSignIns(options: { secretKey: Buffer; dashboardUrl: string }) {
  const cookies = encryptedCookies('sign-in', options);
  const cookieOf = (state: string) => cookies.named(suffixOf(state));
  return {
    async add(request: FastifyRequest, reply: FastifyReply, signIn: SignIn): Promise<void> {
      const begun = cookies.suffixes(request).filter((suffix) => SUFFIX.test(suffix));
      for (const oldest of begun.slice(0, 1 - MAX_PENDING)) cookies.named(oldest).clear(reply);
      await cookieOf(signIn.state).write(reply, signIn, Math.floor(Date.now() / 1_000) + SIGN_IN_S);
    },
    /** The sign-in with this state, which a callback may continue once; undefined if the browser has begun none. */
    async take(request: FastifyRequest, reply: FastifyReply, state: unknown): Promise<SignIn | undefined> {
      if (typeof state !== 'string') return undefined;
      const { data } = SIGN_IN.safeParse(await cookieOf(state).read(request));
      if (data) cookieOf(state).clear(reply);
      return data;
    },
  };
}

/** What `suffixOf` returns. With a name that a client has made up, the cookie to clear could not be written. */
const SUFFIX = /^-[\w-]{16}$/;

function suffixOf(state: string): string {
  return `-${createHash('sha256').update(state).digest('base64url').slice(0, 16)}`;
}
