/**
 * How fast scans are answered through Caddy with TLS, as docs/domains.md describes it: by one gateway worker, and by
 * `node:http` with a constant redirect.
 *
 *   npm run bench:caddy [-- seconds]      default: 3 seconds a round
 *
 * Each request has a connection with a TLS handshake of its own, as phones open them, or connections are kept alive.
 * The subject has the first CPU core for itself; Caddy, the load and everything else share the others. Rounds are
 * interleaved, figures are medians. Needs Caddy and wrk.
 */
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'node:tls';
import { freePort, LOOPBACK } from '../../local/free-port.ts';
import { spawnCaddy } from '../harness/caddy-process.ts';
import { median } from './median.ts';
import { PHONE_HEADERS } from './phone.ts';
import { startScanDatabase } from './scan-database.ts';
import { fillTable, scanLoad, type Throughput, wrk } from './scan-load.ts';
import * as subject from './scan-subjects.ts';

const CODES = 20_000;
const ROUNDS = 7;
/** How often it is checked whether Caddy has started. */
const MAX_ATTEMPTS = 100;
const SECONDS = Number(process.argv[2] ?? 3);

if (!wrk || !subject.isInstalled('caddy')) throw new Error('Caddy and wrk must be installed.');
await using running = new AsyncDisposableStack();
subject.reserveCore();
const { folder, postgres } = await startScanDatabase(running);
const { codes } = await fillTable(join(folder, 'table'), CODES);
const env = { DATABASE_URL: postgres.gatewayUrl, TRUST_PROXY: LOOPBACK };
const gateway = await subject.startGateway(join(folder, 'table'), env);
running.defer(() => gateway.stop());
const constant = await subject.startConstant();
running.defer(() => constant.stop());
const ports = [await freePort(), await freePort()] as const;
const caddy = await startCaddy([
  [ports[0], gateway.port],
  [ports[1], constant.port],
]);
running.defer(() => caddy.stop());

/** `caddy`: its CPU time for each request, in µs. */
type ProxiedThroughput = Throughput & { readonly caddy: number };

interface Rounds {
  readonly opened: ProxiedThroughput[];
  readonly kept: ProxiedThroughput[];
}

const subjects = new Map([
  ['gateway, one worker', { ...gateway, proxyUrl: `https://localhost:${ports[0]}/` }],
  ['node:http, constant', { ...constant, proxyUrl: `https://localhost:${ports[1]}/` }],
]);
const { maxThroughput } = scanLoad(folder, SECONDS);
const throughputs = new Map([...subjects.keys()].map((name) => [name, { opened: [], kept: [] } as Rounds]));
for (let round = 0; round <= ROUNDS; round++) {
  for (const [name, each] of subjects) {
    const [opened, kept] = [await measure(each, true), await measure(each, false)];
    // The first round warms up.
    if (round === 0) continue;
    throughputs.get(name)?.opened.push(opened);
    throughputs.get(name)?.kept.push(kept);
  }
}

console.log(`
| through Caddy | new connections /s | CPU each | Caddy's | requests /s, kept alive | CPU each | Caddy's |
| --- | --- | --- | --- | --- | --- | --- |`);
for (const [name, { opened, kept }] of throughputs) {
  console.log(`| ${[name, ...cells(opened), ...cells(kept)].join(' | ')} |`);
}
const all = [...throughputs.values()].flatMap(({ opened, kept }) => [...opened, ...kept]);
console.log(`\nresponses other than a redirect: ${all.reduce((sum, { wrong }) => sum + wrong, 0)}`);

async function measure(each: subject.Subject, close: boolean): Promise<ProxiedThroughput> {
  const before = await subject.cpuOf(caddy);
  const throughput = await maxThroughput(each, codes, close);
  return { ...throughput, caddy: ((await subject.cpuOf(caddy)) - before) / (throughput.rate * SECONDS) };
}

function cells(rounds: readonly ProxiedThroughput[]): string[] {
  const of = (figure: 'rate' | 'cpu' | 'caddy') => median(rounds.map((round) => round[figure]));
  return [Math.round(of('rate')).toLocaleString('en'), `${of('cpu').toFixed(1)} µs`, `${of('caddy').toFixed(1)} µs`];
}

/** Starts a Caddy with certificates of its own. `sites`: its ports, each with that of the server behind it. */
async function startCaddy(sites: readonly (readonly [number, number])[]) {
  // wrk takes the host of its URL for the handshake; the request has that of the phone.
  const site = ([port, behind]: readonly [number, number]) => `
https://localhost:${port}, https://${PHONE_HEADERS.host}:${port} {
	tls internal
	reverse_proxy ${LOOPBACK}:${behind} {
		header_up -Forwarded
	}
}`;
  const global = `{
	admin off
	default_bind ${LOOPBACK}
	skip_install_trust
	auto_https disable_redirects
}`;
  const started = await spawnCaddy([global, ...sites.map(site)].join('\n'));
  for (const [port] of sites) {
    for (let attempts = 1; !(await acceptsTls(port)); attempts++) {
      if (attempts === MAX_ATTEMPTS) throw new Error('Caddy does not start.');
      await sleep(100);
    }
  }
  return started;
}

async function acceptsTls(port: number): Promise<boolean> {
  const socket = connect({ host: LOOPBACK, port, servername: 'localhost', rejectUnauthorized: false });
  try {
    await once(socket, 'secureConnect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
