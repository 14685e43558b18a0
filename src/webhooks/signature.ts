import { createHmac, randomBytes } from 'node:crypto';

const PREFIX = 'whsec_';
const SECRET_BYTES = 32;

/** A new secret of an endpoint, as its owner sees it. */
export function newSecret(): string {
  return PREFIX + randomBytes(SECRET_BYTES).toString('base64');
}

/** What Standard Webhooks 1.0.0 signs. */
export interface Signed {
  /** The event's id: the same in every attempt. */
  readonly id: string;
  /** When this attempt is made, in Unix seconds. */
  readonly timestamp: number;
  readonly body: string;
}

/** The header `webhook-signature`: one signature for each secret that is in force. */
export function signatures({ id, timestamp, body }: Signed, secrets: readonly string[]): string {
  const sign = (secret: string) =>
    createHmac('sha256', Buffer.from(secret.slice(PREFIX.length), 'base64'))
      .update(`${id}.${timestamp}.${body}`)
      .digest('base64');
  return secrets.map((secret) => `v1,${sign(secret)}`).join(' ');
}
