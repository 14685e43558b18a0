/**
 * What metrics cost the scan path: the rate and the CPU time of a gateway worker that serves its metrics, scraped every
 * second, relative to one that does not.
 *
 *   npm run bench:scan-metrics [-- rounds]      default: 14 rounds of 4 seconds
 *
 * In each round one second of load goes to the worker without, with, with and without metrics, so that what else
 * happens on the machine affects both.
 */
import { join } from 'node:path';
import { freePort, LOOPBACK } from '../../local/free-port.ts';
import { median } from './median.ts';
import { startScanDatabase } from './scan-database.ts';
import { fillTable, scanLoad, type Throughput } from './scan-load.ts';
import * as subject from './scan-subjects.ts';

const ROUNDS = Number(process.argv[2] ?? 14);
const CODES = 20_000;

await using running = new AsyncDisposableStack();
subject.reserveCore();
const { folder, postgres } = await startScanDatabase(running);

const metricsPort = await freePort();
async function start(name: string, env: Readonly<Record<string, string>>) {
  const { folder: data, codes } = await fillTable(join(folder, name), CODES);
  const gateway = await subject.startGateway(data, { DATABASE_URL: postgres.gatewayUrl, ...env });
  running.defer(() => gateway.stop());
  return { gateway, codes };
}
const without = await start('without', {});
const metered = await start('metered', { METRICS_PORT: String(metricsPort) });
// More often than any Prometheus.
const scraping = setInterval(() => {
  fetch(`http://${LOOPBACK}:${metricsPort}/metrics`).then((response) => response.text(), console.error);
}, 1_000);
running.defer(() => clearInterval(scraping));

const { maxThroughput } = scanLoad(folder, 1);
const ratios: Pick<Throughput, 'cpu' | 'rate'>[] = [];
for (let round = 0; round <= ROUNDS; round++) {
  const measured = new Map<typeof without, Throughput[]>();
  for (const each of [without, metered, metered, without]) {
    measured.set(each, [...(measured.get(each) ?? []), await maxThroughput(each.gateway, each.codes)]);
  }
  const sum = (of: typeof without, figure: 'cpu' | 'rate') =>
    (measured.get(of) ?? []).reduce((total, each) => total + each[figure], 0);
  const ratio = (figure: 'cpu' | 'rate') => sum(metered, figure) / sum(without, figure);
  // The first round warms up.
  if (round > 0) ratios.push({ rate: ratio('rate'), cpu: ratio('cpu') });
}
for (const figure of ['rate', 'cpu'] as const) {
  const all = ratios.map((each) => each[figure]);
  console.log(`${figure}: ${median(all).toFixed(3)} (${all.map((each) => each.toFixed(2)).join(', ')})`);
}
