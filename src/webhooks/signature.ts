import { createHmac, randomBytes } from 'node:crypto';

const PREFIX = 'whsec_';
const SECRET_BYTES = 32;

/** Generates the secret of an endpoint: `whsec_` and 32 random bytes in base64. */
export function newSecret(): string {
  return PREFIX + randomBytes(SECRET_BYTES).toString('base64');
}

/** The signed content of a request. Source: Standard Webhooks 1.0.0. */
export interface SignedContent {
  /** The event's id: the same in every attempt. */
  readonly id: string;
  /** The time of this attempt, in Unix seconds. */
  readonly timestamp: number;
  readonly body: string;
}

/** Returns the value of the header `webhook-signature`: one signature for each of the valid secrets. */
export function signatures({ id, timestamp, body }: SignedContent, secrets: readonly string[]): string {
  const sign = (secret: string) =>
    createHmac('sha256', Buffer.from(secret.slice(PREFIX.length), 'base64'))
      .update(`${id}.${timestamp}.${body}`)
      .digest('base64');
  return secrets.map((secret) => `v1,${sign(secret)}`).join(' ');
}
