/**
 * Latencies of other clients' scans and creates during an attack at full speed, from one address and from many.
 *
 *   npm run bench:hostile [-- seconds [attacks…]]      default: 5 for each of all attacks
 *
 * The attacker itself uses CPU time, so the same attack on a bare `node:http` server that rejects every request is
 * measured too: the difference is Signpost's cost. Callers and attacker share the machine with everything else.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Attack, AttackKind } from './attacker.ts';
import { resetBurstLimits } from './burst-limits.ts';
import { GATEWAY_ATTACKS } from './gateway-attacks.ts';
import type { Measured } from './load.ts';
import { startPlatform } from './platform.ts';
import { connectRest, requestText } from './rest-client.ts';
import { runLoad } from './run-load.ts';

const SECONDS = Number(process.argv[2] ?? 5);
const CODES = 500;
const SCANS_A_SECOND = 500;
const CREATE_EVERY_MS = 50;
const MANY = 250;
const ALL: readonly AttackKind[] = [...GATEWAY_ATTACKS, 'core: gzip by Connect', 'core: gzip by gRPC'];
const KINDS = process.argv.length > 3 ? ALL.filter((kind) => process.argv.includes(kind)) : ALL;

await using platform = await startPlatform();
const { apiKey } = await platform.newAccount();
const database = new pg.Client({ connectionString: platform.databaseUrl });
await database.connect();
const gatewayPort = Number(new URL(platform.url).port);
const codes = join(tmpdir(), `signpost-hostile-${process.pid}`);
await writeFile(codes, (await createCodes()).join('\n'));
const sink = fork('test/bench/sink.ts');
const [sinkPort] = (await once(sink, 'message')) as [number];

const rows: Record<string, string | number>[] = [];
await measureOthers();
const idle = await measureOthers();
rows.push({ beside: 'nothing', from: '', ...cells(idle) });
for (const kind of KINDS) {
  for (const addresses of [1, MANY]) {
    const from = addresses === 1 ? 'one address' : `${MANY} addresses`;
    const port = kind.endsWith('Connect')
      ? platform.ports.connect
      : kind.endsWith('gRPC')
        ? platform.ports.grpc
        : gatewayPort;
    if (addresses === 1 && !kind.startsWith('core')) {
      rows.push({ beside: kind, from: 'elsewhere', ...cells(await duringAttack({ kind, port: sinkPort, addresses })) });
    }
    rows.push({ beside: kind, from, ...cells(await duringAttack({ kind, port, addresses })) });
    process.stderr.write('.');
  }
}
rows.push({ beside: 'nothing, again', from: '', ...cells(await measureOthers()) });
console.table(rows);
sink.kill();
await database.end();
await platform[Symbol.asyncDispose]();
process.exit();

interface Latencies {
  /** Undefined when nothing was answered. */
  readonly scan: Measured | undefined;
  readonly creates: readonly number[];
  readonly failed: number;
}

async function duringAttack(attack: Attack): Promise<Latencies> {
  const attacker = fork('test/bench/attacker.ts', [JSON.stringify(attack)], { stdio: 'ignore' });
  await sleep(1_000);
  const latencies = await measureOthers();
  attacker.kill('SIGKILL');
  await once(attacker, 'exit');
  await sleep(500);
  return latencies;
}

/** Measures other clients for `SECONDS`; latencies in ms. */
async function measureOthers(): Promise<Latencies> {
  const load = runLoad({ port: gatewayPort, connections: 16, seconds: SECONDS, rate: SCANS_A_SECOND, codes });
  const creates: number[] = [];
  let failed = 0;
  let client: Awaited<ReturnType<typeof connectRest>> | undefined;
  const end = performance.now() + SECONDS * 1_000;
  for (let count = 0; performance.now() < end; count++) {
    if (count % 50 === 0) await resetBurstLimits(database);
    const start = performance.now();
    const request = requestText('POST', '/qr-codes', apiKey, '{"target_url":"https://example.com/menu"}');
    let status = 0;
    try {
      client ??= await connectRest(gatewayPort);
      status = await client.send(request);
    } catch {
      client = undefined;
    }
    if (status === 201) creates.push(performance.now() - start);
    else failed++;
    await sleep(CREATE_EVERY_MS);
  }
  client?.close();
  return { scan: await load, creates, failed };
}

function cells({ scan, creates, failed }: Latencies) {
  const sorted = creates.toSorted((one, other) => one - other);
  return {
    'scan p50': scan?.p50?.toFixed(1) ?? 'failed',
    'scan p99': scan?.p99?.toFixed(1) ?? 'failed',
    'scans wrong': scan?.wrong ?? -1,
    'create p50': sorted[sorted.length >> 1]?.toFixed(1) ?? 'failed',
    'create p99': sorted[Math.floor(sorted.length * 0.99)]?.toFixed(1) ?? 'failed',
    'creates failed': failed,
  };
}

async function createCodes(): Promise<string[]> {
  const found: string[] = [];
  for (let n = 0; n < CODES; n++) {
    if (n % 50 === 0) await resetBurstLimits(database);
    const response = await fetch(`${platform.url}/api/v1/qr-codes`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}` },
      body: '{"target_url":"https://example.com/menu"}',
    });
    const { data } = (await response.json()) as { data: { short_code: string } };
    found.push(data.short_code);
  }
  return found;
}
