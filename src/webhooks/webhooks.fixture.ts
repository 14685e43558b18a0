import { randomBytes } from 'node:crypto';
import type { Client } from '@connectrpc/connect';
import type { Pool } from 'pg';
import type { EventType } from '../../common/contract/event-types.ts';
import { encodeId, newUuid } from '../../common/contract/ids.ts';
import type { LogRecord } from '../../common/log/log.ts';
import { WebhooksService } from '../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { afterFile } from '../../test/harness/after-file.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { insertAccount } from '../../test/harness/insert-account.ts';
import { cursors } from '../calls/cursors.ts';
import { type Database, openDatabase } from '../db/database.ts';
import { ormTransaction } from '../db/orm-transaction.ts';
import { entities } from '../entities.ts';
import { cloudEvent } from '../events/cloud-event.ts';
import { serviceClient } from '../rpc/service-client.fixture.ts';
import { insertEndpoint } from './endpoints/endpoints.ts';
import { type SecretCipher, secretCipherWith } from './secret-cipher.ts';
import { webhooksService } from './service.ts';
import { newSecret } from './signature.ts';

export interface WebhooksFixture {
  readonly url: string;
  readonly orm: Database['orm'];
  readonly pool: Pool;
  readonly secretCipher: SecretCipher;
  /** Base64. */
  readonly secretKey: string;
  /** Creates an account, and a client of the service that calls it for that account. */
  newAccount(options?: { allowPrivate?: boolean }): Promise<Tenant>;
}

export interface Tenant {
  /** UUID. */
  readonly id: string;
  readonly webhooks: Client<typeof WebhooksService>;
  /** Adds a verified endpoint, by default for `qr.created`. */
  addEndpoint(url: string, events?: readonly EventType[]): Promise<{ id: string; secret: string }>;
}

/** The log record of an event of an account (UUID). `age`: in ms. */
export function eventRecord(
  account: string,
  { type = 'qr.created' as EventType, data = {} as unknown, age = 0 } = {},
): LogRecord {
  const subject = encodeId('qr', newUuid());
  const at = Date.now() - age;
  const { key, headers = {}, value } = cloudEvent({ type, accountId: encodeId('acct', account), subject, at, data });
  return { key, value, headers, partition: 0, offset: 0n, timestamp: Date.now() };
}

/** Creates a database for the calling test file, and the service on it. */
export async function webhooksFixture(): Promise<WebhooksFixture> {
  const { url } = await freshDatabase();
  const database = await openDatabase(url, 20, entities);
  afterFile(() => database.close());
  const { orm, pool } = database;
  const secretKey = randomBytes(32);
  const secretCipher = secretCipherWith(secretKey);
  return {
    url,
    orm,
    pool,
    secretCipher,
    secretKey: secretKey.toString('base64'),
    async newAccount({ allowPrivate = true } = {}) {
      const id = await insertAccount(pool);
      const service = webhooksService({ database, cursors: cursors(secretKey), secretCipher, allowPrivate });
      return {
        id,
        webhooks: serviceClient(WebhooksService, service, { id }),
        async addEndpoint(url, events = ['qr.created']) {
          const [endpointId, secret] = [newUuid(), newSecret()];
          await ormTransaction(orm, async (em, tx) => {
            const encrypted = secretCipher.encrypt(endpointId, secret);
            await insertEndpoint(em, { id: endpointId, accountId: id, url, events: [...events], secret: encrypted });
            await tx.query('update webhook_endpoints set verified_at = now() where id = $1', [endpointId]);
          });
          return { id: encodeId('hook', endpointId), secret };
        },
      };
    },
  };
}
