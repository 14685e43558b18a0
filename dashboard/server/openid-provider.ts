import { createRemoteJWKSet, type JWTPayload, jwtVerify } from 'jose';
import * as openid from 'openid-client';
import type { ProviderSession } from './ended-sessions.ts';

/** How long a request to the provider may take, in s. */
const TIMEOUT_S = 10;

/**
 * Claims that a session keeps are cut off or refused beyond this length, so that its cookie stays below 4,096 bytes.
 */
const MAX_CLAIM = 255;

const LOGOUT_EVENT = 'http://schemas.openid.net/event/backchannel-logout';

/** Signatures by private keys. A key that the provider shares with clients could be another client's. */
const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];

/** The person who signed in at the provider. */
export interface Person extends ProviderSession {
  readonly subject: string;
  /** Only if the provider has verified it. */
  readonly verifiedEmail: string | undefined;
  readonly name: string | null;
}

/** What a callback is checked against. Kept in the browser's sign-in cookie. */
export interface Checks {
  readonly state: string;
  readonly nonce: string;
  /** PKCE. */
  readonly verifier: string;
}

/** An OpenID provider (OpenID Connect Core 1.0), as far as sign-in needs it. */
export interface OpenidProvider {
  /** Where to send the browser. Rejects with `ProviderUnavailableError`. */
  begin(): Promise<{ readonly url: URL; readonly checks: Checks }>;
  /**
   * Exchanges the code in the callback's address. Rejects with `ProviderUnavailableError`, or with another error if the
   * provider refused, or if the callback or the ID token do not belong to `checks`.
   */
  finish(callback: URL, checks: Checks): Promise<Person>;
  /** What a logout token names (OpenID Connect Back-Channel Logout 1.0, 2.6). Rejects if the token is not valid. */
  readLogoutToken(token: string): Promise<ProviderSession>;
}

/** The provider does not answer, or not as one does. */
export class ProviderUnavailableError extends Error {}

/** Discovers the provider when it is first needed, so that the dashboard starts without it. */
export function openidProvider(options: {
  issuer: string;
  clientId: string;
  clientSecret: string;
  redirectUri: string;
}): OpenidProvider {
  const { issuer, clientId, clientSecret, redirectUri } = options;
  let known: Promise<Provider> | undefined;

  function provider(): Promise<Provider> {
    known ??= discover(issuer, clientId, clientSecret).catch((error: unknown) => {
      known = undefined;
      throw new ProviderUnavailableError('the OpenID provider could not be discovered', { cause: error });
    });
    return known;
  }

  return {
    async begin() {
      const { configuration } = await provider();
      const checks = {
        state: openid.randomState(),
        nonce: openid.randomNonce(),
        verifier: openid.randomPKCECodeVerifier(),
      };
      const url = openid.buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: 'openid email profile',
        state: checks.state,
        nonce: checks.nonce,
        code_challenge: await openid.calculatePKCECodeChallenge(checks.verifier),
        code_challenge_method: 'S256',
      });
      return { url, checks };
    },
    async finish(callback, { state, nonce, verifier }) {
      const { configuration } = await provider();
      try {
        const tokens = await openid.authorizationCodeGrant(configuration, callback, {
          pkceCodeVerifier: verifier,
          expectedState: state,
          expectedNonce: nonce,
          idTokenExpected: true,
        });
        const claims = tokens.claims() ?? fail('the provider sent no ID token');
        // Many providers put some or all claims of scopes into the answer of the UserInfo endpoint only. The address
        // and whether it is verified are taken from the same source: the other one may be about another address.
        const isComplete = claims.email !== undefined && claims.email_verified !== undefined;
        const about =
          isComplete || configuration.serverMetadata().userinfo_endpoint === undefined
            ? claims
            : await openid.fetchUserInfo(configuration, tokens.access_token, claims.sub);
        return personIn(claims, about);
      } catch (error) {
        throw isUnreachable(error)
          ? new ProviderUnavailableError('the OpenID provider failed', { cause: error })
          : error;
      }
    },
    async readLogoutToken(token) {
      const { configuration, keys } = await provider();
      const { payload, protectedHeader } = await jwtVerify(token, keys, {
        issuer: configuration.serverMetadata().issuer,
        audience: clientId,
        algorithms: ALGORITHMS,
        requiredClaims: ['jti', 'events'],
        maxTokenAge: '5 minutes',
        clockTolerance: '30 seconds',
      });
      // An ID token or an access token must not pass for a logout token.
      if (!['logout+jwt', 'JWT', undefined].includes(protectedHeader.typ)) fail('this is another kind of token');
      if (!isObject(payload.events) || !isObject(payload.events[LOGOUT_EVENT])) fail('the token ends no session');
      if (payload.nonce !== undefined) fail('a logout token has no nonce');
      const named = { subject: textIn(payload, 'sub'), providerSession: textIn(payload, 'sid') };
      if (named.subject === undefined && named.providerSession === undefined) fail('the token names no session');
      return named;
    },
  };
}

interface Provider {
  readonly configuration: openid.Configuration;
  /** The provider's public keys, fetched at most every 30 s however many tokens name unknown ones. */
  readonly keys: ReturnType<typeof createRemoteJWKSet>;
}

async function discover(issuer: string, clientId: string, clientSecret: string): Promise<Provider> {
  const url = new URL(issuer);
  // Which method a client uses is registered; this is the default of the registration.
  const execute = url.protocol === 'http:' ? [openid.allowInsecureRequests] : [];
  const metadata = { client_secret: clientSecret };
  const configuration = await openid.discovery(url, clientId, metadata, authentication(clientSecret), {
    timeout: TIMEOUT_S,
    // Verifies the signature of the ID token also when it came from the provider directly.
    execute: [...execute, openid.enableNonRepudiationChecks],
  });
  const { jwks_uri: keys } = configuration.serverMetadata();
  if (keys === undefined) fail('the provider publishes no keys');
  return { configuration, keys: createRemoteJWKSet(new URL(keys), { timeoutDuration: TIMEOUT_S * 1_000 }) };
}

/** By HTTP Basic, the default of registrations, unless the provider supports only the form's parameter. */
function authentication(clientSecret: string): openid.ClientAuth {
  const [basic, post] = [openid.ClientSecretBasic(clientSecret), openid.ClientSecretPost(clientSecret)];
  return (server, client, body, headers) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const authenticate = methods.includes('client_secret_basic') ? basic : post;
    authenticate(server, client, body, headers);
  };
}

function personIn(claims: JWTPayload & { sub: string }, about: Readonly<Record<string, unknown>>): Person {
  if (claims.sub.length > MAX_CLAIM) fail('the subject is too long');
  const email = textIn(about, 'email');
  return {
    subject: claims.sub,
    providerSession: textIn(claims, 'sid'),
    verifiedEmail: about.email_verified === true ? email : undefined,
    name: textIn(about, 'name') ?? null,
  };
}

/** A claim that is text of a usable length. */
function textIn(claims: Readonly<Record<string, unknown>>, name: string): string | undefined {
  const value = claims[name];
  return typeof value === 'string' && value !== '' && value.length <= MAX_CLAIM ? value : undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

/** Whether the provider failed, rather than refused. */
function isUnreachable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as { code?: unknown };
  return (
    error.message === 'fetch failed' ||
    ['OAUTH_TIMEOUT', 'OAUTH_ABORT', 'OAUTH_RESPONSE_IS_NOT_CONFORM', 'OAUTH_RESPONSE_IS_NOT_JSON'].includes(
      String(code),
    )
  );
}

function fail(message: string): never {
  throw new Error(message);
}
