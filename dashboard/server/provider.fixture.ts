import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import Provider from 'oidc-provider';
import { freePort, LOOPBACK } from '../../local/free-port.ts';
import { afterFile } from '../../test/harness/after-file.ts';
import type { Browser, Page } from './browser.fixture.ts';

/** A person at the provider, by the name that they sign in with there. */
export interface Claims {
  readonly email?: string;
  readonly email_verified?: boolean | string;
  readonly name?: string;
  /** What the provider puts into the ID token of these; the others are in the answer of its UserInfo endpoint only. */
  readonly inIdToken?: Claims;
}

/** A real OpenID provider. */
export interface TestProvider {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** People who may sign in. */
  readonly people: Map<string, Claims>;
  /** Signs a token with the provider's key, as the provider itself would not. */
  sign(claims: JWTPayload, type?: string): Promise<string>;
  stop(): Promise<void>;
}

/** Starts a provider that knows the dashboard at `dashboardUrl`. */
export async function startProvider(dashboardUrl: string, port?: number): Promise<TestProvider> {
  const at = port ?? (await freePort());
  const issuer = `http://${LOOPBACK}:${at}`;
  const people = new Map<string, Claims>();
  const [clientId, clientSecret] = ['dashboard', randomBytes(32).toString('base64url')];
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const provider = new Provider(issuer, {
    jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: 'first', alg: 'RS256', use: 'sig' }] },
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [`${dashboardUrl}/sign-in/callback`],
        backchannel_logout_uri: `${dashboardUrl}/back-channel-logout`,
        backchannel_logout_session_required: true,
      },
    ],
    findAccount: (_context, id) => ({
      accountId: id,
      claims: async (use) => {
        const { inIdToken, ...inUserInfo } = people.get(id) ?? {};
        return { sub: id, ...(use === 'id_token' ? inIdToken : inUserInfo) } as { sub: string };
      },
    }),
    conformIdTokenClaims: false,
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    features: { devInteractions: { enabled: true }, backchannelLogout: { enabled: true } },
    pkce: { required: () => true },
    cookies: { keys: [randomBytes(32).toString('hex')] },
    // Without its dispatcher, which connects to public addresses only.
    fetch(url, { dispatcher: _, ...options }: RequestInit & { dispatcher?: unknown } = {}) {
      return fetch(url, options);
    },
    ttl: { Interaction: 600, Session: 600, Grant: 600, AccessToken: 600, IdToken: 600 },
  });
  const server = createServer(provider.callback());
  server.listen(at, LOOPBACK);
  await once(server, 'listening');
  const stop = async () => {
    server.closeAllConnections();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  afterFile(stop);
  const sign = (claims: JWTPayload, typ = 'logout+jwt') =>
    new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'first', typ }).sign(privateKey);
  return { issuer, clientId, clientSecret, people, sign, stop };
}

/**
 * Signs in at the provider, from the address that `GET /sign-in` redirects to, and agrees. Returns the callback's
 * address, which is not opened yet.
 */
export async function passProvider(browser: Browser, authorization: string, person: string): Promise<string> {
  const isCallback = (next: string) => next.includes('/sign-in/callback');
  let page: Page = await browser.open(authorization, undefined, isCallback);
  for (let forms = 0; page.status !== 0 && forms < 5; forms++) {
    if (!page.html.includes('<form')) throw new Error(`the provider answered ${page.status}: ${page.html}`);
    page = await browser.submit(page, { login: person, password: 'any' }, isCallback);
  }
  return page.url;
}
