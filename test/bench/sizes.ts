/**
 * How many bytes a code and a scan take in Postgres, in Kafka and in a gateway's route table: what docs/scaling.md
 * calculates with.
 *
 *   npm run bench:sizes [-- batches seconds]      default: 8 batches of 25,000 codes, 15 seconds of scans
 *
 * Starts Apache Kafka and a Signpost like that of a local run, creates batches over REST, and then answers as many
 * scans as it can in random order: of 1,000 codes, and then of all. Sizes are measured after a `VACUUM`, and each line
 * is the difference to what was there before, so that fixed sizes don't count.
 */
import { readdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { startKafka } from '../harness/kafka.ts';
import { outboxPublished } from '../harness/outbox-published.ts';
import { startPlatform } from './platform.ts';
import { scanLoad } from './scan-load.ts';

const [BATCHES, SECONDS] = [Number(process.argv[2] ?? 8), Number(process.argv[3] ?? 15)];
const CODES = BATCHES * 25_000;
/** Codes that are scanned alone at first, so often that their counters hardly count. */
const HOT = 1_000;

await using running = new AsyncDisposableStack();
const kafka = await startKafka();
running.defer(() => kafka.stop());
const platform = running.use(await startPlatform({ KAFKA_BROKERS: kafka.brokers }));
const folder = dirname(platform.logs.gateway);
const pool = new pg.Pool({ connectionString: platform.databaseUrl, max: 2 });
running.defer(() => pool.end());

/** Bytes by what they are of. */
type Sizes = ReadonlyMap<string, number>;

async function sizes(): Promise<Sizes> {
  await pool.query('vacuum analyze');
  const { rows } = await pool.query<{ name: string; bytes: string }>(
    `select coalesce(parent.relname, c.relname) as name, sum(pg_total_relation_size(c.oid)) as bytes
     from pg_class c left join pg_inherits i on i.inhrelid = c.oid left join pg_class parent on parent.oid = i.inhparent
     where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace group by 1`,
  );
  const tables = rows.map(({ name, bytes }) => [`Postgres: ${name}`, Number(bytes)] as const);
  const files = await readdir(kafka.folder, { recursive: true });
  const segments = files.filter((file) => file.endsWith('.log') && /signpost\./.test(file));
  const topics = new Map<string, number>();
  for (const file of segments) {
    const topic = `Kafka: ${/signpost\.[a-z.-]+\.v1/.exec(file)?.[0]}`;
    topics.set(topic, (topics.get(topic) ?? 0) + (await stat(join(kafka.folder, file))).size);
  }
  const { blocks } = await stat(join(folder, 'gateway', 'routes', 'data.mdb'));
  return new Map([...tables, ...topics, ['route table of a gateway', blocks * 512]]);
}

function print(what: string, count: number, before: Sizes, after: Sizes): void {
  console.log(`\n| bytes of each of ${count.toLocaleString('en')} ${what} | |\n| --- | --- |`);
  for (const [name, bytes] of [...after].toSorted(([one], [other]) => one.localeCompare(other))) {
    const each = (bytes - (before.get(name) ?? 0)) / count;
    if (each >= 0.5) console.log(`| ${name} | ${each.toFixed(0)} |`);
  }
}

const { apiKey } = await platform.newAccount();
const empty = await sizes();
for (let batch = 0; batch < BATCHES; batch++) {
  const rows = Array.from({ length: 25_000 }, (_, n) => ({
    target_url: `https://shop.example.com/menu?table=${batch}-${n}`,
    external_ref: `table ${batch}-${n}`,
  }));
  const response = await fetch(`${platform.url}/api/v1/batches`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ rows }),
  });
  if (!response.ok) throw new Error(`the batch answered ${response.status}`);
}
await outboxPublished(pool);
const shortCodes = (await pool.query<{ short_code: string }>('select short_code from codes')).rows;
if (shortCodes.length !== CODES) throw new Error(`${shortCodes.length} codes were created`);
await followed(shortCodes.at(-1)?.short_code ?? '');
const created = await sizes();
print('codes', CODES, empty, created);

const { maxThroughput } = scanLoad(folder, SECONDS);
const gateway = { port: Number(new URL(platform.url).port), pid: platform.pids.gateway, stop: async () => undefined };
let [before, earlier] = [created, 0];
for (const scanned of [HOT, CODES]) {
  const codes = join(folder, `${scanned}.codes`);
  const first = shortCodes.slice(0, scanned).map(({ short_code }) => short_code);
  await writeFile(codes, first.join('\n'));
  await maxThroughput(gateway, codes);
  const scans = (await allRecorded()) - earlier;
  const after = await sizes();
  print(`scans of ${scanned.toLocaleString('en')} codes`, scans, before, after);
  [before, earlier] = [after, earlier + scans];
}

/** Waits until no more scans are recorded; returns their number. */
async function allRecorded(): Promise<number> {
  let last = -1;
  for (;;) {
    const { rows } = await pool.query<{ scans: number }>('select count(*)::integer as scans from scans');
    const scans = rows[0]?.scans ?? 0;
    if (scans === last) return scans;
    last = scans;
    await sleep(5_000);
  }
}

/** Waits until the gateway knows a code. */
async function followed(shortCode: string): Promise<void> {
  while ((await fetch(`${platform.url}/r/${shortCode}`, { redirect: 'manual', method: 'HEAD' })).status !== 302) {
    await sleep(100);
  }
}
