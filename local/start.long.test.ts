import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdtemp, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { afterFile } from '../test/harness/after-file.ts';
import { freshDatabase } from '../test/harness/database.ts';
import { isolatedEnvironment, type LocalRun, startLocally } from '../test/harness/local-run.ts';
import { freePort, isFree, LOOPBACK } from './free-port.ts';

type Place = Awaited<ReturnType<typeof isolatedEnvironment>>;

/** For one start after another: the first in a new folder also creates a database and migrates it. */
const used = await isolatedEnvironment(afterFile);

type Ports = [postgres: number, core: number, gateway: number, dashboard: number];

/** The ports of Postgres, core, gateway and dashboard, in the order in which they have to start. */
async function portsOf({ DATA_DIR, CORE_PORT, PORT, DASHBOARD_PORT }: Place): Promise<Ports> {
  const config = await readFile(join(DATA_DIR, 'postgres/data/postgresql.conf'), 'utf8');
  return [Number(/port = '(\d+)'/.exec(config)?.[1]), Number(CORE_PORT), Number(PORT), Number(DASHBOARD_PORT)];
}

async function expectNothingLeft(place: Place): Promise<void> {
  for (const port of await portsOf(place)) expect(await isFree(port)).toBe(true);
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, LOOPBACK);
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

function keyIn(printed: string): string {
  return /sk_live_[0-9A-Za-z]{43}/.exec(printed)?.[0] ?? '';
}

function accountIn(printed: string): string | undefined {
  return /acct_[0-9a-z]+/.exec(printed)?.[0];
}

async function endedBy(run: LocalRun, signal: NodeJS.Signals): Promise<number | null> {
  run.signal(signal);
  return (await run.ended).code;
}

/** The printed session, but waiting until the scan is recorded instead of two seconds. */
function patient(printed: string): string {
  const session = printed.slice(printed.indexOf('  KEY=')).trim();
  const last = session.slice(session.lastIndexOf('\n')).trim();
  return session.replace('sleep 2', `until ${last} | grep -q '"total_scans":1'; do sleep 0.1; done`);
}

/** Signs the owner in with a printed link, which works once. */
async function expectSignInLink(place: Place, printed: string): Promise<void> {
  const [, origin = '', token = ''] = /(http:\S+)\/sign-in\/link#(\S+)/.exec(printed) ?? [];
  expect(origin).toBe(`http://localhost:${place.DASHBOARD_PORT}`);
  const signIn = () => {
    const body = new URLSearchParams({ token });
    return fetch(`${origin}/sign-in/link`, { method: 'POST', redirect: 'manual', headers: { origin }, body });
  };
  const { status, headers } = await signIn();
  expect(status).toBe(303);
  const cookie = headers
    .getSetCookie()
    .map((each) => each.split(';')[0])
    .join('; ');
  const session = await fetch(`${origin}/session`, { headers: { cookie } });
  expect(await session.json()).toMatchObject({ email: 'owner@localhost', member: { role: 'owner' } });
  expect((await signIn()).status).not.toBe(303);
}

/** Its secrets can be read by their owner only, and no log has them. */
async function expectSecretsKept({ DATA_DIR }: Place): Promise<void> {
  for (const name of ['api-key', 'service-token', 'secret-key']) {
    expect((await stat(join(DATA_DIR, name))).mode & 0o777).toBe(0o600);
  }
  const logs = await Promise.all(
    ['core.log', 'worker.log', 'gateway.log', 'dashboard.log'].map((name) =>
      readFile(join(DATA_DIR, 'logs', name), 'utf8'),
    ),
  );
  for (const name of ['api-key', 'service-token', 'secret-key', 'postgres/password']) {
    const secret = (await readFile(join(DATA_DIR, name), 'utf8')).trim();
    expect(logs.join()).not.toContain(secret);
  }
}

describe('npm start', () => {
  test('prints a session and a sign-in link that work as they are, and on the second start the same key and a new link', async () => {
    const place = await isolatedEnvironment();
    const first = startLocally(place, ['npm', 'start']);
    const printed = await first.ready;
    const [, reference = ''] = /API reference +(\S+)/.exec(printed) ?? [];
    expect((await fetch(reference)).headers.get('content-type')).toContain('html');
    const folder = await mkdtemp(join(dirname(place.DATA_DIR), 'session-'));
    const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', patient(printed)], { cwd: folder });
    expect(stdout).toContain('HTTP/1.1 302');
    expect(stdout.toLowerCase()).toContain('location: https://example.com/menu');
    expect(stdout).toContain('"total_scans":1');
    expect((await readFile(join(folder, 'code.png'))).subarray(1, 4).toString()).toBe('PNG');
    const link = await first.prints('dashboard link');
    await expectSignInLink(place, link);
    expect(await endedBy(first, 'SIGINT')).toBe(0);
    await expectNothingLeft(place);

    const second = startLocally(place);
    const again = await second.prints('dashboard link');
    expect(keyIn(again)).toBe(keyIn(printed));
    expect(accountIn(again)).toBe(accountIn(link));
    await expectSignInLink(place, again);
  });

  test('uses its account again after its key was rotated', async () => {
    const place = await isolatedEnvironment();
    const first = startLocally(place);
    const [, command = ''] =
      /^ +(.*npm run signpost -- dashboard link .*)$/m.exec(await first.prints('another one')) ?? [];
    const another = await promisify(execFile)('bash', ['-c', command]);
    expect(another.stdout).toContain(`http://localhost:${place.DASHBOARD_PORT}/sign-in/link#`);
    const rotate = command.replace(/dashboard link (--account \S+).*/, 'key rotate $1 --yes');
    await promisify(execFile)('bash', ['-c', rotate]);
    expect(await endedBy(first, 'SIGINT')).toBe(0);
    const second = startLocally(place);
    const printed = await second.prints('another one');
    expect(printed).toMatch(/API key +no longer valid/);
    expect(printed).toContain(/--account acct_\w+/.exec(command)?.[0]);
    expect(await endedBy(second, 'SIGTERM')).toBe(0);
  });

  test('starts without a dashboard on request', async () => {
    const run = startLocally({ ...used, DASHBOARD: 'false' });
    await run.ready;
    expect(await readdir(join(used.DATA_DIR, 'logs'))).not.toContain('dashboard.log');
    expect(await endedBy(run, 'SIGHUP')).toBe(0);
    expect((await run.ended).stdout).not.toContain('dashboard');
    await expectNothingLeft(used);
  });

  test('keeps its secrets, and on SIGINT stops the dashboard, the gateway, the core and then Postgres', async () => {
    const run = startLocally(used);
    await run.prints('dashboard link');
    await expectSecretsKept(used);
    const [postgres, core, gateway, dashboard] = await portsOf(used);
    let gone = false;
    run.ended.then(() => (gone = true));
    const gatewayPid = await run.child('gateway');
    process.kill(gatewayPid, 'SIGSTOP');
    run.signal('SIGINT');
    // Long enough for a core that was stopped at the same time to have exited.
    await pause(500);
    expect(await answers(core)).toBe(true);
    process.kill(gatewayPid, 'SIGCONT');
    while (!gone) {
      // Those that stop later are checked first: if one has exited already, the others must have too.
      const seen = [await answers(postgres), await answers(core), await answers(gateway), await answers(dashboard)];
      expect(seen).toEqual(seen.toSorted().reverse());
    }
    expect((await run.ended).code).toBe(0);
    await expectNothingLeft(used);
  });

  test('leaves no process running when interrupted while it starts', async () => {
    const place = await isolatedEnvironment();
    const run = startLocally(place);
    await expect.poll(() => readFile(join(place.DATA_DIR, 'logs/core.log'))).toBeDefined();
    expect(await endedBy(run, 'SIGINT')).toBe(0);
    expect((await run.ended).stderr).toBe('');
    await expectNothingLeft(place);
  });

  test('on a second Ctrl-C kills what does not stop', async () => {
    const run = startLocally({ ...used, DASHBOARD: 'false' });
    await run.ready;
    process.kill(await run.child('gateway'), 'SIGSTOP');
    run.signal('SIGINT');
    const again = setInterval(() => run.signal('SIGINT'), 1_000);
    onTestFinished(() => clearInterval(again));
    expect((await run.ended).code).toBe(130);
    await expectNothingLeft(used);
  });

  test.each(['core', 'gateway', 'dashboard'] as const)(
    'when the %s dies, says so, stops everything and exits 1',
    async (name) => {
      const run = startLocally(used);
      await run.prints('dashboard link');
      process.kill(await run.child(name), 'SIGKILL');
      const { code, stderr } = await run.ended;
      expect(code).toBe(1);
      expect(stderr).toContain(`The ${name} ended by SIGKILL. `);
      await expectNothingLeft(used);
    },
  );

  test('when Postgres dies, says so, stops everything and exits 1', async () => {
    const run = startLocally(used);
    await run.prints('dashboard link');
    const file = await readFile(join(used.DATA_DIR, 'postgres/data/postmaster.pid'), 'utf8');
    process.kill(Number(file.split('\n')[0]), 'SIGKILL');
    const { code, stderr } = await run.ended;
    expect(code).toBe(1);
    expect(stderr).toMatch(/^Postgres ended\. The end of .*postgres\.log:\n/);
    await expectNothingLeft(used);
  });

  test.runIf(process.platform === 'linux')(
    'serves on LISTEN_HOST, with cores on this machine only and the Postgres that DATABASE_URL names',
    async () => {
      const place = await isolatedEnvironment();
      const SERVICE_TOKEN = 'c2VydmljZS10b2tlbi1vZi1hbi1vcGVyYXRvcg0123456=';
      const { url: DATABASE_URL } = await freshDatabase();
      const run = startLocally({
        ...place,
        LISTEN_HOST: '127.0.0.2',
        CORE_HOST: '192.0.2.1',
        SERVICE_TOKEN,
        DATABASE_URL,
      });
      const printed = await run.prints('another one (with the SERVICE_TOKEN of this run)');
      const [, reference = ''] = /API reference +(\S+)/.exec(printed) ?? [];
      const [, link = ''] = /(http:\S+\/sign-in\/link)#/.exec(printed) ?? [];
      expect(reference).toBe(`http://127.0.0.2:${place.PORT}/docs`);
      expect(link).toBe(`http://127.0.0.2:${place.DASHBOARD_PORT}/sign-in/link`);
      for (const url of [reference, link]) expect((await fetch(url)).status).toBe(200);
      expect(await Promise.all([answers(Number(place.PORT)), answers(Number(place.CORE_PORT))])).toEqual([false, true]);
      const [, command = ''] = /^ +(.*npm run signpost -- dashboard link .*)$/m.exec(printed) ?? [];
      expect(command).toContain('CORE_HOST=127.0.0.1 ');
      await expect(access(join(place.DATA_DIR, 'postgres'))).rejects.toThrow('ENOENT');
      expect(await endedBy(run, 'SIGINT')).toBe(0);
    },
  );

  test('does not prevent the next start after it was killed', async () => {
    const place = await isolatedEnvironment();
    const killed = startLocally(place);
    const printed = await killed.ready;
    killed.signal('SIGKILL');
    await killed.ended;
    const ports = [place.PORT, place.CORE_PORT, place.GRPC_PORT, place.DASHBOARD_PORT].map(Number);
    for (const port of ports) await expect.poll(() => isFree(port)).toBe(true);

    const next = startLocally(place);
    expect(keyIn(await next.ready)).toBe(keyIn(printed));
  });
});

describe('npm start says in one sentence', () => {
  async function expectSentence(env: Record<string, string>, sentence: string): Promise<void> {
    const { code, stdout, stderr } = await startLocally(env).ended;
    expect(stderr).toBe(`${sentence}\n`);
    expect(stdout).toBe('');
    expect(code).toBe(1);
  }

  test('that a port is in use', async () => {
    const place = await isolatedEnvironment();
    const other = createServer().listen(Number(place.CORE_PORT), LOOPBACK);
    onTestFinished(() => void other.close());
    await expectSentence(place, `Port ${place.CORE_PORT} is in use or not allowed: set CORE_PORT to another one.`);
  });

  test('that a variable is neither true nor false', async () => {
    const place = await isolatedEnvironment();
    await expectSentence({ ...place, SAMPLE: 'no' }, 'SAMPLE must be true or false.');
  });

  test('that a port is invalid', async () => {
    const place = await isolatedEnvironment();
    await expectSentence({ ...place, PORT: '80a' }, 'PORT must be a port: 1 to 65535.');
  });

  test("that DATA_DIR can't be written to", async () => {
    const place = await isolatedEnvironment();
    await writeFile(place.DATA_DIR, 'a file in the way');
    await expectSentence(place, `DATA_DIR (${place.DATA_DIR}) can't be written to: EEXIST.`);
  });

  test('that LISTEN_HOST is not an address of this machine', async () => {
    const place = await isolatedEnvironment();
    await expectSentence({ ...place, LISTEN_HOST: '192.0.2.1' }, 'LISTEN_HOST is not an address of this machine.');
  });

  test.runIf(process.getuid?.() === 0)('that setpriv is missing', async () => {
    const place = await isolatedEnvironment();
    const PATH = dirname(place.DATA_DIR);
    await symlink(process.execPath, join(PATH, 'node'));
    await symlink('/usr/bin/id', join(PATH, 'id'));
    await expectSentence(
      { ...place, PATH, DASHBOARD: 'false' },
      "Postgres needs setpriv, which can't be run (ENOENT). Install util-linux, run as another user than root, or set DATABASE_URL.",
    );
  });

  test('that another Signpost uses DATA_DIR', async () => {
    const place = await isolatedEnvironment();
    const first = startLocally({ ...place, DASHBOARD: 'false' });
    await expect.poll(() => readdir(place.DATA_DIR).catch(() => [])).toContain('postgres');
    await expectSentence(place, `Another Signpost is already using DATA_DIR (${place.DATA_DIR}).`);
    await endedBy(first, 'SIGTERM');
  });

  test('that the Postgres that DATABASE_URL_FILE names does not answer, without its password', async () => {
    const place = await isolatedEnvironment();
    const host = `${LOOPBACK}:${await freePort()}`;
    const DATABASE_URL_FILE = join(dirname(place.DATA_DIR), 'database-url');
    await writeFile(DATABASE_URL_FILE, `postgres://someone:secret@${host}/signpost\n`);
    await expectSentence({ ...place, DATABASE_URL_FILE }, `Postgres is unavailable: connect ECONNREFUSED ${host}`);
  });
});
