/**
 * What policies of targets cost one gateway worker that answers scans, and its route table.
 *
 *   npm run bench:policies [-- codes seconds previous]      default: 100,000 codes, 1 second a round
 *
 * `previous` is the folder of another checkout, such as of the commit before policies (`git worktree add`), with a
 * node_modules; its worker then answers for codes without a policy too. One in ten codes has a policy of five rules:
 * dates, a weekly schedule, countries, languages with devices, and a split, which decides, so that all conditions are
 * evaluated. Rounds are interleaved, figures are medians, and each core is used as by `scan.ts`. With 0 seconds, only
 * the sizes of the tables are printed.
 *
 * Codes with a policy are scanned as often as others ("hot": 1,000 of them, whose policies stay compiled), and in
 * random order out of all, which is the worst case: most have to be compiled for one scan.
 */
import { stat, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { policyOf } from '../../common/targets/policy.fixture.ts';
import type { Policy } from '../../proto/gen/signpost/targets/v1/policy_pb.ts';
import { median } from './median.ts';
import { startScanDatabase } from './scan-database.ts';
import { fillTable, scanLoad, type Throughput } from './scan-load.ts';
import * as subject from './scan-subjects.ts';

const [CODES, SECONDS] = [Number(process.argv[2] ?? 100_000), Number(process.argv[3] ?? 1)];
const PREVIOUS = process.argv[4] === undefined ? undefined : resolve(process.argv[4]);
const ROUNDS = 11;
const HOT = 1_000;
const POLICY_EVERY = 10;

await using running = new AsyncDisposableStack();
subject.reserveCore();
const { folder, postgres } = await startScanDatabase(running);

const plain = await fillTable(join(folder, 'plain'), CODES);
const policyAt = (at: number) => (at % POLICY_EVERY === 0 ? fiveRules(at) : undefined);
const mixed = await fillTable(join(folder, 'mixed'), CODES, policyAt);
if (SECONDS === 0) {
  await printTables();
  await running.disposeAsync();
  process.exit();
}
const other = await fillTable(join(folder, 'other'), CODES, policyAt);
const withPolicy = ({ shortCodes }: { shortCodes: readonly string[] }) =>
  shortCodes.filter((_, at) => at % POLICY_EVERY === 0);

const env = { DATABASE_URL: postgres.gatewayUrl };
async function start(table: string, project?: string) {
  const gateway = await subject.startGateway(table, env, project);
  running.defer(() => gateway.stop());
  return gateway;
}
// Each has a worker of its own, whose memory has none of the others' garbage.
const gateway = await start(plain.folder);
const deciding = await start(mixed.folder);
const compiling = await start(other.folder);
const before = await subject.memoryOf(deciding);

const previous = PREVIOUS === undefined ? [] : [await fillTable(join(folder, 'previous'), CODES)];
const cases = [
  ...(await Promise.all(
    previous.map(async ({ folder, codes }) => ({ name: 'previous version', of: await start(folder, PREVIOUS), codes })),
  )),
  { name: 'no policy', of: gateway, codes: plain.codes },
  { name: 'no policy, hot', of: gateway, codes: await codesFile('plain-hot', plain.shortCodes.slice(0, HOT)) },
  { name: 'five rules, hot', of: deciding, codes: await codesFile('hot', withPolicy(mixed).slice(0, HOT)) },
  { name: 'five rules, random', of: compiling, codes: await codesFile('random', withPolicy(other)) },
].map((each) => ({ ...each, rounds: [] as Throughput[] }));
const { maxThroughput } = scanLoad(folder, SECONDS);
for (let round = 0; round <= ROUNDS; round++) {
  // Each begins a round in turn: what one leaves to be published takes CPU time from the next.
  for (const { of, codes, rounds } of [...cases.slice(round % cases.length), ...cases.slice(0, round % cases.length)]) {
    const throughput = await maxThroughput(of, codes);
    // The first round warms up.
    if (round > 0) rounds.push(throughput);
  }
}

const rateOf = (rounds: readonly Throughput[]) => median(rounds.map(({ rate }) => rate));
const base = rateOf(cases.find(({ name }) => name === 'no policy')?.rounds ?? []);
console.log(`| ${CODES.toLocaleString('en')} codes | requests /s | of codes without a policy | CPU each |`);
console.log('| --- | --- | --- | --- |');
for (const { name, rounds } of cases) {
  const rate = rateOf(rounds);
  const cpu = median(rounds.map((each) => each.cpu));
  console.log(
    `| ${name} | ${Math.round(rate).toLocaleString('en')} | ${(rate / base).toFixed(3)} | ${cpu.toFixed(1)} µs |`,
  );
}
const wrong = cases.flatMap(({ rounds }) => rounds).reduce((sum, each) => sum + each.wrong, 0);
const memoryText = ({ resident, own, files }: subject.Memory) =>
  `${resident} MiB resident = ${own} its own + ${files} pages of the table and of programs`;
console.log(`
responses other than a redirect: ${wrong}
memory of the worker without policies: ${memoryText(await subject.memoryOf(gateway))}
with policies, hot: ${memoryText(await subject.memoryOf(deciding))}; before the load: ${memoryText(before)}
with policies, random: ${memoryText(await subject.memoryOf(compiling))}`);

await printTables();

async function printTables(): Promise<void> {
  const sizes = [await megabytes(mixed.folder), await megabytes(plain.folder)];
  console.log(`table of ${CODES.toLocaleString('en')} codes: ${sizes[0]} MB with policies, ${sizes[1]} MB without`);
}

/** Dates, a schedule, countries, and languages with devices that do not apply to the load's phone; then a split. */
function fiveRules(code: number): Policy {
  const target = (name: string) => ({ target_url: `https://example.com/${name}?table=${code}` });
  return policyOf({
    rules: [
      {
        name: 'campaign',
        when: { from: '2098-01-01T00:00:00Z', until: '2098-02-01T00:00:00Z' },
        then: target('campaign'),
      },
      {
        name: 'lunch',
        when: { weekly: { time_zone: 'Europe/Berlin', days: ['mon', 'tue'], from: notNow(), until: notNow(1) } },
        then: target('lunch'),
      },
      { name: 'France', when: { countries: ['FR', 'BE', 'CH'] }, then: target('fr') },
      { name: 'tablets', when: { languages: ['de'], devices: ['tablet'] }, then: target('tablet') },
      {
        name: 'test',
        then: {
          split: [
            { label: 'a', weight: 3, ...target('a') },
            { label: 'b', weight: 1, ...target('b') },
          ],
        },
      },
    ],
  });
}

/** An hour of the day that is not near, in UTC. */
function notNow(later = 0): string {
  return `${String((new Date().getUTCHours() + 12 + later) % 24).padStart(2, '0')}:00`;
}

async function codesFile(name: string, shortCodes: readonly string[]): Promise<string> {
  const path = join(folder, `${name}.codes`);
  await writeFile(path, shortCodes.join('\n'));
  return path;
}

async function megabytes(of: string): Promise<string> {
  const { blocks } = await stat(join(of, 'routes/data.mdb'));
  return ((blocks * 512) / 1e6).toFixed(0);
}
