import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { create } from '@bufbuild/protobuf';
import type { Pool } from 'pg';
import { decodeId, encodeId } from '../../common/contract/ids.ts';
import { transaction } from '../../common/postgres/sql.ts';
import { Feature } from '../../proto/gen/signpost/access/v1/requirements_pb.ts';
import {
  CreateCodeRequestSchema,
  ListCodesRequestSchema,
  UpdateCodeRequestSchema,
} from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { admit } from '../../src/access/admit.ts';
import { hashApiKey } from '../../src/access/api-key.ts';
import { cursors } from '../../src/calls/cursors.ts';
import { createCode, readNewCode } from '../../src/codes/create/create-code.ts';
import { platformHosts } from '../../src/codes/fields/platform-hosts.ts';
import { findCode } from '../../src/codes/find-code.ts';
import { listCodes } from '../../src/codes/list/list-codes.ts';
import { updateCode } from '../../src/codes/update/update-code.ts';
import type { Platform } from './platform.ts';
import { type RestClient, requestText } from './rest-client.ts';

export const ACCOUNTS = 10;
const CODES_EACH = 100_000;
const TARGET = 'https://example.com/menu';

export interface Operation {
  rest(n: number, client: RestClient): Promise<unknown>;
  straight(n: number): Promise<unknown>;
}

interface Tenant {
  readonly key: string;
  /** Ids of some of its codes. */
  readonly codes: string[];
}

/** Each operation over REST and as direct statements through pg: the n-th call is for the account n % ACCOUNTS. */
export async function operationsOn(platform: Platform, pool: Pool): Promise<Record<string, Operation>> {
  const tenants = await Promise.all(Array.from({ length: ACCOUNTS }, () => newTenant(platform, pool)));
  await pool.query('vacuum analyze codes');
  const { url: platformUrl } = platform;
  const isPlatformHost = platformHosts(platformUrl, []);
  const codeCursors = cursors(randomBytes(32)).byId;
  const mask = { paths: ['name'] };
  return {
    create: {
      rest: (n, client) => sendRequest(client, 'POST', '/qr-codes', n, { target_url: TARGET }),
      async straight(n) {
        const account = await admitted(n, true);
        await transaction(pool, async (tx) => {
          const message = create(CreateCodeRequestSchema, { targetUrl: TARGET });
          return createCode(tx, platformUrl, account, await readNewCode(pool, isPlatformHost, account, message));
        });
      },
    },
    get: {
      rest: (n, client) => sendRequest(client, 'GET', `/qr-codes/${code(n)}`, n),
      async straight(n) {
        const { id } = await admitted(n, false);
        await findCode(pool, id, code(n));
      },
    },
    list: {
      rest: (n, client) => sendRequest(client, 'GET', '/qr-codes', n),
      async straight(n) {
        const { id } = await admitted(n, true);
        await listCodes({ pool, platformUrl, cursors: codeCursors }, id, create(ListCodesRequestSchema));
      },
    },
    change: {
      rest: (n, client) =>
        sendRequest(client, 'PATCH', `/qr-codes/${code(n)}`, n, { name: `rest ${n} ${performance.now()}` }),
      async straight(n) {
        const { id } = await admitted(n, false);
        const message = { id: code(n), updateMask: mask, name: `straight ${n} ${performance.now()}` };
        await transaction(pool, (tx) =>
          updateCode(tx, { platformUrl, isPlatformHost }, id, create(UpdateCodeRequestSchema, message), 'api'),
        );
      },
    },
  };

  function tenant(n: number): Tenant {
    const found = tenants[n % ACCOUNTS];
    if (!found) throw new Error('no such tenant');
    return found;
  }

  function code(n: number): string {
    const { codes } = tenant(n);
    return codes[Math.floor(n / ACCOUNTS) % codes.length] ?? '';
  }

  async function admitted(n: number, needsApi: boolean) {
    const admission = await admit(pool, hashApiKey(tenant(n).key), needsApi ? [Feature.API] : []);
    if (!admission || admission.rejection) throw admission?.rejection ?? new Error('the key is invalid');
    return admission.account;
  }

  async function sendRequest(
    client: RestClient,
    method: string,
    path: string,
    n: number,
    body?: object,
  ): Promise<void> {
    const status = await client.send(requestText(method, path, tenant(n).key, JSON.stringify(body)));
    if (status >= 300) throw new Error(`${method} ${path} answered ${status}`);
  }
}

/** An account with 100,000 codes. */
async function newTenant(platform: Platform, pool: Pool): Promise<Tenant> {
  const { accountId, apiKey } = await platform.newAccount();
  const account = decodeId('acct', accountId) ?? '';
  await pool.query(
    `insert into codes (id, account_id, type, short_code, target_url, name)
     select uuidv7(), $1::uuid, 'dynamic', substr(md5($1::uuid::text || n), 1, 14), 'https://example.com/' || n, 'Code ' || n
     from generate_series(1, $2::integer) as n`,
    [account, CODES_EACH],
  );
  await pool.query('update code_counts set listed = $2, live = $2 where account_id = $1', [account, CODES_EACH]);
  const { rows } = await pool.query<{ id: string }>('select id from codes where account_id = $1 limit 200', [account]);
  return { key: apiKey, codes: rows.map(({ id }) => encodeId('qr', id)) };
}
