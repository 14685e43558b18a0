/**
 * What the REST API costs beside the same statements issued straight through `pg` in one process.
 *
 *   npm run bench:api
 *
 * Starts a Postgres with the settings of a local run, a core and a gateway. Rounds are interleaved: REST, straight,
 * REST, straight. A key makes 120 requests a minute, so requests are spread over accounts and the windows are emptied
 * between rounds. The load comes from this process and shares the machine with all of it.
 */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { create } from '@bufbuild/protobuf';
import { startChild } from '../../local/child.ts';
import { createAccount } from '../../local/create-account.ts';
import { freePort, LOOPBACK } from '../../local/free-port.ts';
import { startPostgres } from '../../local/postgres.ts';
import { Feature } from '../../proto/gen/signpost/access/v1/requirements_pb.ts';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import {
  CreateCodeRequestSchema,
  ListCodesRequestSchema,
  UpdateCodeRequestSchema,
} from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { admit } from '../../src/access/admit.ts';
import { hashApiKey } from '../../src/access/api-key.ts';
import { createCode, readNewCode } from '../../src/codes/create-code.ts';
import { cursors } from '../../src/codes/cursor.ts';
import { findCode } from '../../src/codes/find-code.ts';
import { listCodes } from '../../src/codes/list-codes.ts';
import { updateCode } from '../../src/codes/update-code.ts';
import { decodeId, encodeId } from '../../src/contract/ids.ts';
import { openDatabase } from '../../src/db/database.ts';
import { transaction } from '../../src/db/sql.ts';
import { scanCounts } from '../../src/scans/totals.ts';

const CONCURRENCY = 16;
const ROUNDS = 3;
const ACCOUNTS = 10;
const CODES_EACH = 100_000;
const REQUESTS = ACCOUNTS * 110;
const TARGET = 'https://example.com/menu';

interface Tenant {
  readonly key: string;
  /** UUID. */
  readonly account: string;
  /** Ids of some of its codes. */
  readonly codes: string[];
}

const folder = await mkdtemp(join(tmpdir(), 'signpost-bench-'));
await using running = new AsyncDisposableStack();
running.defer(() => rm(folder, { recursive: true, force: true }));
const postgres = await startPostgres({ folder: join(folder, 'postgres') });
running.defer(() => postgres.stop());
const [port, corePort, grpcPort] = [await freePort(), await freePort(), await freePort()];
const serviceToken = randomBytes(32).toString('hex');
const shared = { PATH: process.env.PATH, LOG_LEVEL: 'warn', PUBLIC_URL: `http://localhost:${port}` };
const core = await startChild({
  name: 'core',
  program: 'src/main.ts',
  log: join(folder, 'core.log'),
  env: {
    ...shared,
    DATABASE_URL: postgres.url,
    CORE_PORT: String(corePort),
    GRPC_PORT: String(grpcPort),
    SERVICE_TOKEN: serviceToken,
    SECRET_KEY: randomBytes(32).toString('base64'),
  },
});
running.defer(() => core.stop());
const gateway = await startChild({
  name: 'gateway',
  program: 'gateway/main.ts',
  log: join(folder, 'gateway.log'),
  env: {
    ...shared,
    DATABASE_URL: postgres.gatewayUrl,
    PORT: String(port),
    DATA_DIR: join(folder, 'gateway'),
    CORE_ADDRESS: `${LOOPBACK}:${grpcPort}`,
  },
});
running.defer(() => gateway.stop());
const database = await openDatabase(postgres.url, 20);
running.defer(() => database.close());
const { pool } = database;
const tenants = await Promise.all(Array.from({ length: ACCOUNTS }, newTenant));
await pool.query('vacuum analyze codes');

const platformUrl = shared.PUBLIC_URL;
const issued = cursors(randomBytes(32));
const agent = new Agent({ keepAlive: true, maxSockets: CONCURRENCY });
const mask = { paths: ['name'] };

/** Each operation over REST, and its statements straight through pg. */
const OPERATIONS: Record<string, { rest: (n: number) => Promise<unknown>; straight: (n: number) => Promise<unknown> }> =
  {
    create: {
      rest: (n) => call('POST', '/qr-codes', tenant(n), { target_url: TARGET }),
      async straight(n) {
        const account = await admitted(n, true);
        await transaction(pool, async (tx) => {
          const message = create(CreateCodeRequestSchema, { targetUrl: TARGET });
          return createCode(tx, platformUrl, account, await readNewCode(pool, platformUrl, account, message));
        });
      },
    },
    get: {
      rest: (n) => call('GET', `/qr-codes/${code(n)}`, tenant(n)),
      async straight(n) {
        const { id } = await admitted(n, false);
        const row = await findCode(pool, id, code(n));
        await scanCounts(pool, id, [row.id]);
      },
    },
    'list 25 of 100,000': {
      rest: (n) => call('GET', '/qr-codes', tenant(n)),
      async straight(n) {
        const { id } = await admitted(n, true);
        await listCodes({ pool, platformUrl, cursors: issued }, id, create(ListCodesRequestSchema));
      },
    },
    patch: {
      rest: (n) => call('PATCH', `/qr-codes/${code(n)}`, tenant(n), { name: `rest ${n} ${performance.now()}` }),
      async straight(n) {
        const { id } = await admitted(n, false);
        const message = { id: code(n), updateMask: mask, name: `straight ${n} ${performance.now()}` };
        await transaction(pool, (tx) => updateCode(tx, platformUrl, id, create(UpdateCodeRequestSchema, message)));
      },
    },
  };

console.log('| Operation | REST /s | p50 | p99 | straight /s | p50 | p99 | of straight |');
console.log('| --- | --- | --- | --- | --- | --- | --- | --- |');
for (const [name, { rest, straight }] of Object.entries(OPERATIONS)) {
  const rounds: { rest: Round; straight: Round }[] = [];
  for (let round = 0; round <= ROUNDS; round++) rounds.push({ rest: await load(rest), straight: await load(straight) });
  // The first round warms up.
  const over = median(rounds.slice(1).map((each) => each.rest));
  const direct = median(rounds.slice(1).map((each) => each.straight));
  const ratio = (over.rate / direct.rate).toFixed(2);
  console.log(`| ${[name, ...figures(over), ...figures(direct), ratio].join(' | ')} |`);
}
agent.destroy();

interface Round {
  readonly rate: number;
  readonly p50: number;
  readonly p99: number;
}

async function load(operation: (n: number) => Promise<unknown>): Promise<Round> {
  await pool.query('update meters set admissions = array_fill(0::bigint, array[120]), turn = 1');
  const times: number[] = [];
  let next = 0;
  const start = performance.now();
  const lanes = Array.from({ length: CONCURRENCY }, async () => {
    for (let n = next++; n < REQUESTS; n = next++) {
      const begin = performance.now();
      await operation(n);
      times.push(performance.now() - begin);
    }
  });
  await Promise.all(lanes);
  const seconds = (performance.now() - start) / 1_000;
  const sorted = times.toSorted((one, other) => one - other);
  const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? 0;
  return { rate: REQUESTS / seconds, p50: at(0.5), p99: at(0.99) };
}

function median(rounds: readonly Round[]): Round {
  const of = (key: keyof Round) =>
    rounds.map((round) => round[key]).toSorted((one, other) => one - other)[rounds.length >> 1] ?? 0;
  return { rate: of('rate'), p50: of('p50'), p99: of('p99') };
}

function figures({ rate, p50, p99 }: Round): string[] {
  return [Math.round(rate).toString(), `${p50.toFixed(1)} ms`, `${p99.toFixed(1)} ms`];
}

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
  const judged = await admit(pool, hashApiKey(tenant(n).key), needsApi ? [Feature.API] : []);
  if (!judged || judged.refusal) throw judged?.refusal ?? new Error('the key is nobody’s');
  return judged.account;
}

function call(method: string, path: string, { key }: Tenant, body?: unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${key}` };
    const sent = request({ agent, host: LOOPBACK, port, method, path: `/api/v1${path}`, headers }, (response) => {
      response.resume();
      response.on('error', reject);
      response.on('end', () => {
        if ((response.statusCode ?? 500) < 300) resolve();
        else reject(new Error(`${method} ${path} answered ${response.statusCode}`));
      });
    });
    sent.on('error', reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** An account with 100,000 codes. */
async function newTenant(): Promise<Tenant> {
  const made = await createAccount({ corePort, serviceToken }, { name: 'Bench', plan: Plan.ENTERPRISE });
  const account = decodeId('acct', made.accountId) ?? '';
  await pool.query(
    `insert into codes (id, account_id, type, short_code, target_url, name)
     select uuidv7(), $1::uuid, 'dynamic', substr(md5($1::uuid::text || n), 1, 14), 'https://example.com/' || n, 'Code ' || n
     from generate_series(1, $2::integer) as n`,
    [account, CODES_EACH],
  );
  await pool.query('update code_counts set listed = $2, live = $2 where account_id = $1', [account, CODES_EACH]);
  const { rows } = await pool.query<{ id: string }>('select id from codes where account_id = $1 limit 200', [account]);
  return { key: made.apiKey, account, codes: rows.map(({ id }) => encodeId('qr', id)) };
}
