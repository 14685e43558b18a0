import type { IncomingHttpHeaders } from 'node:http';

/** Stands for an idempotency key that metadata can't carry. The core turns it down by its own rule: it has spaces. */
const UNSENDABLE_KEY = 'not visible ASCII';

/** What gRPC metadata can carry as it is. */
const SENDABLE = /^[\x20-\x7e]*$/;

/** The metadata of the call that a request becomes: who asks, as the caller said it, and the key that makes it replayable. */
export function callMetadata(requestId: string, headers: IncomingHttpHeaders, idempotent: boolean): Headers {
  const metadata = new Headers({ 'x-request-id': requestId });
  const { authorization } = headers;
  // A key that can't be sent is nobody's, like one that was not given.
  if (authorization !== undefined && SENDABLE.test(authorization)) metadata.set('authorization', authorization);
  const key = headers['idempotency-key'];
  if (idempotent && typeof key === 'string') {
    metadata.set('idempotency-key', SENDABLE.test(key) ? key : UNSENDABLE_KEY);
  }
  return metadata;
}
