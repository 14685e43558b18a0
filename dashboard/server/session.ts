import { randomUUID } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { z } from 'zod';
import { type EncryptedCookie, encryptedCookie } from './cookies.ts';
import type { Core } from './core.ts';
import { type EndedSessions, endedSessions } from './ended-sessions.ts';

/** How long a session lasts after sign-in, in s: a working day. */
export const SESSION_S = 12 * 60 * 60;

/** What the session cookie contains. Roles and names are not part of it: the core is asked for them. */
const SESSION = z.object({
  id: z.string(),
  /** s since 1970. */
  startedAt: z.number(),
  expiresAt: z.number(),
  /** As the OpenID provider verified it, or of the member whose link was redeemed. */
  email: z.string(),
  name: z.string().nullable(),
  /** `acct_…` and `mbr_…`: the account that is open, and whom the calls to the core name. */
  account: z.string(),
  member: z.string(),
  /** Set when the person signed in at the OpenID provider, which proves that the address is theirs; a link does not. */
  subject: z.string().optional(),
  /** The session at the OpenID provider (`sid`), if it says. */
  providerSession: z.string().optional(),
});

export type Session = Readonly<z.infer<typeof SESSION>>;

/**
 * Who is behind a session, for limits: one person can sign in often. Not the address: a link does not prove that it is
 * theirs.
 */
export function personOf({ subject, member }: Session): string {
  return subject === undefined ? `member ${member}` : `subject ${subject}`;
}

/** The sessions of browsers: read from cookies, started and ended. */
export interface Sessions {
  /** The session that a request carries; undefined if there is none that is valid. */
  of(request: FastifyRequest): Promise<Session | undefined>;
  /** Starts a session, with a new id whatever the request carried. */
  start(reply: FastifyReply, person: Omit<Session, 'id' | 'startedAt' | 'expiresAt'>): Promise<void>;
  /** Opens another account in a session, which lasts no longer for that. */
  update(reply: FastifyReply, session: Session): Promise<void>;
  end(reply: FastifyReply, session: Session): Promise<void>;
  readonly ended: EndedSessions;
}

export function openSessions(options: {
  secretKey: Buffer;
  dashboardUrl: string;
  core: Core;
  logger: Logger;
}): Sessions {
  const cookie: EncryptedCookie = encryptedCookie('session', options);
  const ended = endedSessions({ ...options, lifetimeS: SESSION_S });
  const update = (reply: FastifyReply, session: Session) => cookie.write(reply, session, session.expiresAt);
  return {
    ended,
    update,
    async of(request) {
      const { data: session } = SESSION.safeParse(await cookie.read(request));
      return session && !(await ended.has(session)) ? session : undefined;
    },
    start(reply, person) {
      const startedAt = nowS();
      return update(reply, { ...person, id: randomUUID(), startedAt, expiresAt: startedAt + SESSION_S });
    },
    async end(reply, session) {
      cookie.clear(reply);
      await ended.end(session);
    },
  };
}

/** The current time in whole s since 1970. */
function nowS(): number {
  return Math.floor(Date.now() / 1_000);
}
