/**
 * The resource usage of an idle `npm start`: CPU and memory of each process, and transactions of Postgres.
 *
 *   npm run bench:idle [-- seconds]      default: 60
 *
 * Starts it with its own data and ports, and once before, to fill Node's compile cache. RSS counts shared pages, such
 * as those of the Node program, in each process; PSS divides them among the processes, so only the sum of PSS is the
 * memory that is used. Linux only.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { freePort } from '../../local/free-port.ts';
import { addressOf, OWNER } from '../../local/postgres-roles.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { cpuOf } from './cpu.ts';
import { childrenOf, rolledUp } from './process-tree.ts';

/**
 * The time after which a start has ended, in ms: V8 collects the garbage of an idle process and gives its pages back
 * after 100 s at the latest.
 */
const SETTLE_MS = 130_000;

const seconds = Number(process.argv[2] ?? 60);
const folder = await mkdtemp(join(tmpdir(), 'signpost-idle-'));
try {
  await (await start()).stop();
  const { pid, stop } = await start();
  try {
    await sleep(SETTLE_MS);
    console.log(await measure(pid));
  } finally {
    await stop();
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}

/** Runs the script `start` of package.json; resolves once Signpost is running. */
async function start(): Promise<{ pid: number; stop(): Promise<void> }> {
  const [port, corePort, grpcPort, dashboardPort] = await Promise.all(Array.from({ length: 4 }, freePort));
  const child = spawn('sh', ['-c', packageJson.scripts.start], {
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      DATA_DIR: folder,
      PORT: String(port),
      CORE_PORT: String(corePort),
      GRPC_PORT: String(grpcPort),
      DASHBOARD_PORT: String(dashboardPort),
      SAMPLE: 'false',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const ready = Promise.withResolvers<void>();
  child.stdout.on('data', (text) => {
    if (String(text).includes('dashboard link')) ready.resolve();
  });
  await Promise.race([ready.promise, ended.then(() => Promise.reject(new Error('npm start has ended')))]);
  return {
    pid: child.pid ?? 0,
    async stop() {
      child.kill('SIGINT');
      await ended;
    },
  };
}

/** A table of what each process uses in `seconds`. `root`: the process that started the others. */
async function measure(root: number): Promise<string> {
  const postmaster = Number((await readFile(join(folder, 'postgres/data/postmaster.pid'), 'latin1')).split('\n', 1)[0]);
  const config = await readFile(join(folder, 'postgres/data/postgresql.conf'), 'utf8');
  const secret = (await readFile(join(folder, 'postgres/password'), 'utf8')).trim();
  const server = { port: Number(/^port = '(\d+)'$/m.exec(config)?.[1]), secret };
  const client = new pg.Client(addressOf(server, OWNER, OWNER));
  await client.connect();
  const commits = async () => {
    const { rows } = await client.query('select xact_commit from pg_stat_database where datname = current_database()');
    return Number(rows[0].xact_commit);
  };
  const processes = treeBelow(root);
  const ownCpu = (pid: number) => cpuOf(pid) - childrenOf(pid).reduce((sum, child) => sum + cpuOf(child), 0);
  const before = processes.map(ownCpu);
  const postgresBefore = cpuOf(postmaster);
  const commitsBefore = await commits();
  await sleep(seconds * 1_000);
  const transactions = (await commits()) - commitsBefore;
  await client.end();

  const rows = await Promise.all(
    processes.map(async (pid, index) => ({
      name: await nameOf(pid),
      cpu: ownCpu(pid) - (before[index] ?? Number.NaN),
      rss: rolledUp(pid, 'Rss'),
      pss: rolledUp(pid, 'Pss'),
    })),
  );
  const sum = (key: 'cpu' | 'rss' | 'pss') => rows.reduce((total, row) => total + row[key], 0);
  const postgres = treeBelow(postmaster);
  const postgresRow = {
    name: `Postgres, ${postgres.length} processes`,
    cpu: cpuOf(postmaster) - postgresBefore,
    rss: postgres.reduce((total, pid) => total + rolledUp(pid, 'Rss'), 0),
    pss: postgres.reduce((total, pid) => total + rolledUp(pid, 'Pss'), 0),
  };
  const all = { name: `Node, ${rows.length} processes`, cpu: sum('cpu'), rss: sum('rss'), pss: sum('pss') };
  return [
    `${(transactions / seconds).toFixed(1)} transactions a second in ${seconds} s\n`,
    '| process | of a core | RSS | PSS |\n| --- | --- | --- | --- |',
    ...[...rows, all, postgresRow].map(
      ({ name, cpu, rss, pss }) =>
        `| ${name} | ${(cpu / seconds / 10_000).toFixed(2)} % | ${rss.toFixed(0)} MiB | ${pss.toFixed(0)} MiB |`,
    ),
  ].join('\n');
}

function treeBelow(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(treeBelow)];
}

/** The program of a process, with the roles of a core. */
async function nameOf(pid: number): Promise<string> {
  const args = (await readFile(`/proc/${pid}/cmdline`, 'latin1')).split('\0');
  const roles = /(?:^|\0)ROLES=([^\0]*)/.exec(await readFile(`/proc/${pid}/environ`, 'latin1'))?.[1];
  const program = args.find((arg) => arg.endsWith('.ts'))?.replace(`${process.cwd()}/`, '');
  return `\`${program}\`${roles ? `, ${roles.replaceAll(',', ', ')}` : ''}`;
}
