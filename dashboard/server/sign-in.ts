import { Code, ConnectError } from '@connectrpc/connect';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { clientOf } from '../../common/http/client-of.ts';
import { fairQueue } from '../../common/queues/fair-queue.ts';
import { throttledFailures, throttledReport } from '../../common/runtime/throttled-report.ts';
import { type Core, isCoreFailure } from './core.ts';
import { membershipsOf } from './memberships.ts';
import { type OpenidProvider, ProviderUnavailableError } from './openid-provider.ts';
import { sendPage } from './pages/page.ts';
import { pendingSignIns, type SignIn } from './pending-sign-ins.ts';
import type { Sessions } from './session.ts';
import { whileOpen } from './while-open.ts';

/**
 * Anyone may send made-up codes and links: how many are checked at a time, fairly by the client's address. Links take a
 * part of the connections to the core that sessions need as well.
 */
const PROVIDER_CODES = { concurrency: 50, maxWaiting: 2_000, items: 'sign-ins' };
const LINKS = { concurrency: 8, maxWaiting: 2_000, items: 'sign-ins' };

/** The shortest time between two log lines about what was rejected, in ms: anyone may send it. */
const REPORT_MS = 60_000;

/** The longest address that a sign-in leads back to: the cookie that keeps it must stay below 4,096 bytes. */
const MAX_ADDRESS = 1_000;

/** An id of an account, of limited length likewise. */
const ACCOUNT_ID = /^acct_\w{1,64}$/;

/**
 * Sign-in at the OpenID provider: `GET /sign-in`, with the page to lead to as `to` and the account to open there as
 * `account`, and `GET /sign-in/callback`.
 */
export function signInAtProvider(
  app: FastifyInstance,
  options: {
    dashboardUrl: string;
    secretKey: Buffer;
    core: Core;
    sessions: Sessions;
    provider: OpenidProvider;
    logger: Logger;
  },
): void {
  const { dashboardUrl, core, sessions, provider, logger } = options;
  const pending = pendingSignIns(options);
  const inTurn = fairQueue(PROVIDER_CODES);
  const reportUnavailable = throttledFailures((fields) => logger.warn(fields, 'the OpenID provider is unavailable'));
  const reportSignIn = throttledReport(REPORT_MS, (rejected, error: unknown) =>
    logger.info({ rejected, reason: reasonOf(error) }, 'a sign-in at the OpenID provider was rejected'),
  );
  const reportLogoutToken = throttledReport(REPORT_MS, (rejected, error: unknown) =>
    logger.info({ rejected, reason: reasonOf(error) }, 'a logout token was rejected'),
  );

  app.get<{ Querystring: { to?: unknown; account?: unknown } }>('/sign-in', async (request, reply) => {
    reply.header('cache-control', 'no-store');
    const { account } = request.query;
    const way: WayIn = {
      to: ownAddress(request.query.to, dashboardUrl),
      ...(typeof account === 'string' && ACCOUNT_ID.test(account) && { account }),
    };
    try {
      const { url, checks } = await provider.begin();
      await pending.add(request, reply, { ...checks, ...way });
      return reply.redirect(url.href, 303);
    } catch (error) {
      reportUnavailable(error);
      return sendPage(request, reply, 'provider-unavailable', { signIn: again(way) });
    }
  });

  app.get<{ Querystring: { state?: unknown } }>('/sign-in/callback', async (request, reply) => {
    const checks = await pending.take(request, reply, request.query.state);
    if (!checks) return sendPage(request, reply, 'sign-in-failed');
    try {
      const callback = new URL(request.url, dashboardUrl);
      const person = await inTurn(clientOf(request.ip), whileOpen(reply), () => provider.finish(callback, checks));
      const { verifiedEmail: email, name, subject, providerSession } = person;
      if (email === undefined) return sendPage(request, reply, 'unverified', { signIn: again(checks) });
      const memberships = await membershipsOf(core, email);
      const membership = memberships.find(({ accountId }) => accountId === checks.account) ?? memberships[0];
      if (!membership) return sendPage(request, reply, 'not-a-member', { signIn: again(checks) });
      const { accountId: account, member: { id: member } = { id: '' } } = membership;
      await sessions.start(reply, { email, name, account, member, subject, providerSession });
      logger.info({ account, member, by: 'provider' }, 'a member has signed in');
      return reply.header('cache-control', 'no-store').redirect(checks.to, 303);
    } catch (error) {
      if (error instanceof ConnectError) return sendPage(request, reply, 'unavailable', { signIn: again(checks) });
      if (error instanceof ProviderUnavailableError) {
        reportUnavailable(error);
        return sendPage(request, reply, 'provider-unavailable', { signIn: again(checks) });
      }
      reportSignIn(1, error);
      return sendPage(request, reply, 'sign-in-failed', { signIn: again(checks) });
    }
  });

  app.post<{ Body: URLSearchParams }>('/back-channel-logout', async (request, reply) => {
    reply.header('cache-control', 'no-store');
    try {
      const named = await provider.readLogoutToken(request.body.get('logout_token') ?? '');
      const known = await sessions.ended.endAt(named);
      logger.info('the OpenID provider has ended a session');
      // Other instances don't know yet: the provider may repeat it, and this one does.
      if (!known) return reply.code(503).send({ error: 'temporarily_unavailable' });
      return reply.code(200).send();
    } catch (error) {
      const isProviders = error instanceof ProviderUnavailableError;
      if (isProviders) reportUnavailable(error);
      else reportLogoutToken(1, error);
      return reply.code(isProviders ? 503 : 400).send({ error: 'invalid_request' });
    }
  });
}

/** Sign-in with a link that works once: `GET /sign-in/link` shows a form, which the token is added to by its script. */
export function signInByLink(
  app: FastifyInstance,
  { core, sessions, logger }: { core: Core; sessions: Sessions; logger: Logger },
): void {
  const inTurn = fairQueue(LINKS);

  app.get('/sign-in/link', (request, reply) => sendPage(request, reply, 'link', { token: '' }));

  app.post<{ Body: unknown }>('/sign-in/link', async (request, reply) => {
    const token = (request.body instanceof URLSearchParams && request.body.get('token')) || '';
    try {
      const redeem = () => core.accounts.redeemSignInLink({ token });
      const { membership } = await inTurn(clientOf(request.ip), whileOpen(reply), redeem);
      if (!membership?.member) throw new ConnectError('the core returned no member', Code.Internal);
      const { accountId: account, member } = membership;
      await sessions.start(reply, { email: member.email, name: null, account, member: member.id });
      logger.info({ account, member: member.id, by: 'link' }, 'a member has signed in');
      return reply.header('cache-control', 'no-store').redirect('/', 303);
    } catch (error) {
      if (!(error instanceof ConnectError)) throw error;
      // The link may still be valid, but no page shows its token any more.
      if (isCoreFailure(error)) return sendPage(request, reply, 'unavailable', { token });
      return sendPage(request, reply, 'link-invalid');
    }
  });
}

/** Where a sign-in leads. */
type WayIn = Pick<SignIn, 'to' | 'account'>;

/** The address that begins a sign-in which leads to the same page of the same account. */
function again({ to, account }: WayIn): string {
  return `/sign-in?${new URLSearchParams({ to, ...(account !== undefined && { account }) })}`;
}

/**
 * The absolute address of `to`, or of the first page if `to` is not a page of the dashboard: a link must not lead
 * elsewhere.
 */
function ownAddress(to: unknown, dashboardUrl: string): string {
  const first = new URL('/', dashboardUrl);
  const url = typeof to === 'string' && URL.canParse(to, first.href) ? new URL(to, first) : first;
  return url.origin === first.origin && url.href.length <= MAX_ADDRESS ? url.href : first.href;
}

/**
 * Why something was rejected, as the libraries name it: their messages may quote what the caller or the provider sent.
 */
function reasonOf(error: unknown): string {
  const { code, error: answered } = error as { code?: unknown; error?: unknown };
  const reason = typeof answered === 'string' ? answered : String(code ?? 'invalid');
  return reason.slice(0, 60);
}
