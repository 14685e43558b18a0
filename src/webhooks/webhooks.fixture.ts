import { randomBytes } from 'node:crypto';
import { type Client, createClient, createRouterTransport } from '@connectrpc/connect';
import pg, { type Pool } from 'pg';
import { WebhooksService } from '../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { afterFile } from '../../test/harness/after-file.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { callerKey } from '../access/caller.ts';
import { newUuid } from '../contract/ids.ts';
import { type Seal, sealWith } from './seal.ts';
import { webhooksService } from './service.ts';

export interface WebhooksFixture {
  readonly url: string;
  readonly pool: Pool;
  readonly seal: Seal;
  /** A new account, and the service as an internal caller has it who acts for that account. */
  newAccount(options?: { allowPrivate?: boolean }): Promise<Tenant>;
}

export interface Tenant {
  /** UUID. */
  readonly id: string;
  readonly webhooks: Client<typeof WebhooksService>;
}

/** A database of the calling file's own with the service over it. */
export async function webhooksFixture(): Promise<WebhooksFixture> {
  const { url } = await freshDatabase();
  const pool = new pg.Pool({ connectionString: url, max: 20 });
  pool.on('error', () => undefined);
  afterFile(() => pool.end());
  const seal = sealWith(randomBytes(32));
  return {
    url,
    pool,
    seal,
    async newAccount({ allowPrivate = true } = {}) {
      const account = {
        id: newUuid(),
        features: { api: true, bulk: true, images: true },
        codeLimit: null,
        batchLimit: 0,
      };
      await pool.query(`insert into accounts (id, name, plan) values ($1, 'Test', 'business')`, [account.id]);
      const service = webhooksService({ pool, seal, allowPrivate });
      const transport = createRouterTransport((router) => router.service(WebhooksService, service), {
        router: {
          interceptors: [
            (next) => (request) => {
              request.contextValues.set(callerKey, { kind: 'service', account, actor: 'a test' });
              return next(request);
            },
          ],
        },
      });
      return { id: account.id, webhooks: createClient(WebhooksService, transport) };
    },
  };
}
