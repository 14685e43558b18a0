import type { FastifyInstance, FastifyReply } from 'fastify';
import { nameOf, ROLE_BY_NAME } from '../../common/contract/names.ts';
import { fairQueue } from '../../common/queues/fair-queue.ts';
import { type Membership, Role } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import type { Core } from './core.ts';
import { usableMemberships } from './memberships.ts';
import { personOf, type Session, type Sessions } from './session.ts';
import { whileOpen } from './while-open.ts';

/**
 * How many questions about sessions the core is asked at a time, fairly by person. They share the server's own
 * connections with sign-ins and with the list of ended sessions, which all sessions need.
 */
const QUESTIONS = { concurrency: 32, maxWaiting: 2_000, items: 'sessions' };

/** `GET /session`, `POST /session/account` and `DELETE /session`: what the pages ask about the person. */
export function sessionRoutes(
  app: FastifyInstance,
  options: { core: Core; sessions: Sessions; publicUrl: string; signIn: readonly string[] },
): void {
  const { core, sessions, publicUrl, signIn } = options;
  const inTurn = fairQueue(QUESTIONS);
  const askMemberships = (session: Session, reply: FastifyReply) =>
    inTurn(personOf(session), whileOpen(reply), () => usableMemberships(core, session));

  app.get('/session', async (request, reply) => {
    reply.header('cache-control', 'no-store');
    const session = await sessions.of(request);
    if (!session) return reply.code(401).send({ signIn });
    return describe(reply, session, await askMemberships(session, reply));
  });

  app.post<{ Body: unknown }>('/session/account', async (request, reply) => {
    reply.header('cache-control', 'no-store');
    const session = await sessions.of(request);
    if (!session) return reply.code(401).send({ signIn });
    const { id } = (request.body ?? {}) as { id?: unknown };
    if (typeof id !== 'string') return reply.code(400).send({ error: 'id: must be the account to open, acct_….' });
    const memberships = await askMemberships(session, reply);
    if (!memberships.some(({ accountId }) => accountId === id)) {
      return reply.code(403).send({ error: 'You are not a member of this account.' });
    }
    return describe(reply, { ...session, account: id }, memberships);
  });

  app.delete('/session', async (request, reply) => {
    reply.header('cache-control', 'no-store');
    const session = await sessions.of(request);
    if (session) await sessions.end(reply, session);
    return reply.code(204).send();
  });

  /**
   * Describes a session with the account that it names, or else, if the person has left that one, with another one. A
   * person without any account is signed out.
   */
  async function describe(reply: FastifyReply, session: Session, memberships: readonly Membership[]) {
    const current = memberships.find(({ accountId }) => accountId === session.account) ?? memberships[0];
    if (!current?.member) {
      await sessions.end(reply, session);
      return reply.code(401).send({ signIn });
    }
    const { accountId, accountName, member } = current;
    // Not otherwise: a slow answer would put this session back in place of one that another tab has meanwhile.
    if (accountId !== session.account || member.id !== session.member) {
      await sessions.update(reply, { ...session, account: accountId, member: member.id });
    }
    return reply.send({
      email: session.email,
      name: session.name,
      account: { id: accountId, name: accountName },
      member: { id: member.id, role: nameOf(ROLE_BY_NAME, member.role) },
      accounts: memberships.map((each) => ({
        id: each.accountId,
        name: each.accountName,
        role: nameOf(ROLE_BY_NAME, each.member?.role ?? Role.UNSPECIFIED),
      })),
      publicUrl,
    });
  }
}
