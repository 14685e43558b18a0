import type { IncomingHttpHeaders } from 'node:http';
import { bearerToken, invalidApiKey, looksLikeApiKey, missingApiKey } from '../../common/contract/api-key.ts';

/** Stands for an idempotency key that metadata can't carry. The core turns it down by its own rule: it has spaces. */
const UNSENDABLE_KEY = 'not visible ASCII';

/** What gRPC metadata can carry as it is. */
const SENDABLE = /^[\x20-\x7e]*$/;

/** The metadata of the call that a request becomes, without who is calling: its id, and the key that makes it replayable. */
export function callMetadata(requestId: string, headers: IncomingHttpHeaders, idempotent: boolean): Headers {
  const metadata = new Headers({ 'x-request-id': requestId });
  const key = headers['idempotency-key'];
  if (idempotent && typeof key === 'string') {
    metadata.set('idempotency-key', SENDABLE.test(key) ? key : UNSENDABLE_KEY);
  }
  return metadata;
}

/**
 * The `authorization` of the call. Throws UNAUTHENTICATED unless the request carries a token of an API key's shape, so
 * that anything else, an internal service's token too, ends here and costs the core nothing.
 */
export function callAuthorization({ authorization }: IncomingHttpHeaders): string {
  const token = bearerToken(authorization);
  if (token === undefined) throw missingApiKey();
  if (!looksLikeApiKey(token)) throw invalidApiKey();
  return `Bearer ${token}`;
}
