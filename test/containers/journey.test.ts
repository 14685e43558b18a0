import { execFile } from 'node:child_process';
import { appendFileSync, chmodSync, chownSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test, vi } from 'vitest';
import { DAY_MS } from '../../common/runtime/durations.ts';
import { dayOf } from '../../src/scans/days.ts';
import { compose, composeIn, latestId, seconds, sh } from './shell.ts';

/**
 * The section "In containers" of docs/operating/installing.md, and the command for a container in
 * docs/operating/outages.md, run as they stand there: each step runs blocks of commands of these pages and checks what
 * they promise. `test/containers/run.sh` provides the engine, and a copy of the project to run in.
 */

const checkout = process.env.CONTAINERS_CHECKOUT ?? '';
const PAGES = ['docs/operating/installing.md', 'docs/operating/outages.md'];
const PROGRAMS = ['core', 'worker', 'gateway'];
const EVENTUALLY = { timeout: 60_000, interval: 500 };

/** The first day whose scans are counted: a run may last over midnight. */
const FROM = dayOf(Date.now() - DAY_MS);
const API = 'http://localhost:8080/api/v1';
/** What `curl` says of a connection that closed without a response. */
const NO_RESPONSE = /curl: \((16|52|35|56)\)/;
const run = promisify(execFile);

/** The pages' blocks of commands that this test has to run. */
const blocks = PAGES.flatMap((page) => [
  ...readFileSync(page, 'utf8').matchAll(
    /<!-- run by test\/containers\/journey\.test\.ts -->\n\n *```sh\n(.*?)\n *```/gs,
  ),
]).map(([, commands = '']) => commands);
const unused = new Set(blocks);

/** The block that contains a text. */
function documented(text: string): string {
  const block = blocks.find((commands) => commands.includes(text));
  if (block === undefined) throw new Error(`No block of ${PAGES.join(' or ')} contains \`${text}\`.`);
  unused.delete(block);
  return block;
}

let key = '';
let account = '';
let scanUrl = '';
/** Scans that were answered by a redirect, and that were sent at all. */
const scans = { answered: 0, sent: 0 };

async function scan(): Promise<number> {
  scans.sent++;
  const { status, headers } = await fetch(scanUrl, { redirect: 'manual', signal: AbortSignal.timeout(5_000) });
  if (status !== 302) return status;
  expect(headers.get('location')).toBe('https://example.com/menu');
  scans.answered++;
  return status;
}

/** Waits until every answered scan is counted, and checks that none is counted that was not sent. */
async function expectCounted(core = 'core', composed = compose): Promise<void> {
  await vi.waitFor(async () => {
    const audit = await composed('exec', core, 'signpost', 'scans', 'audit', '--from', FROM);
    const counted = Number(/^counted +(\d+)/m.exec(audit)?.[1]);
    expect(counted, audit).toBeGreaterThanOrEqual(scans.answered);
    expect(counted, audit).toBeLessThanOrEqual(scans.sent);
  }, EVENTUALLY);
}

async function inspect(format: string, services: readonly string[]): Promise<string[]> {
  const ids = (await compose('ps', '--all', '--quiet', ...services)).trim().split('\n');
  return (await run('docker', ['inspect', '--format', format, ...ids])).stdout.trim().split('\n');
}

test('three commands create the secrets, start everything, and print a key and a session', async () => {
  const [createSecrets = '', start = '', printKey = ''] = documented('first-account').split('\n');
  await sh(createSecrets);
  await expect(sh(createSecrets)).rejects.toThrow('.env exists');
  appendFileSync(
    join(checkout, '.env'),
    'TRUST_PROXY=192.0.2.0/24\nSPOOL_RETENTION_HOURS=1\nPLATFORM_ADDRESSES=192.0.2.1\n',
  );
  await seconds('docker compose build', () => compose('build', '--quiet'));
  await seconds('docker compose up --wait', () => sh(start));
  const printed = await sh(printKey);
  [key = ''] = /sk_live_\w+/.exec(printed) ?? [];
  const session = printed.slice(printed.indexOf('  KEY=')).replace('sleep 2', '');
  const output = await sh(`${session}\nfile=$(head -c 4 code.png | tail -c 3)\necho "$SCAN_URL $file"`);
  scanUrl = /(http:\S+\/r\/\w+) PNG/.exec(output)?.[1] ?? '';
  expect(output).toContain('302 Found');
  scans.sent++;
  scans.answered++;
  expect(await scan()).toBe(302);
  await expectCounted();
});

test('variables of .env reach the containers, and unset ones stay unset', async () => {
  const gateway = await compose('exec', 'gateway', 'env');
  expect(gateway).toMatch(/^TRUST_PROXY=192\.0\.2\.0\/24$/m);
  expect(gateway).not.toMatch(/^(LOG_LEVEL|COUNTRY_HEADER|SERVICE_TOKEN|SECRET_KEY)=/m);
  const core = await compose('exec', 'core', 'env');
  expect(core).toMatch(/^PLATFORM_ADDRESSES=192\.0\.2\.1$/m);
  expect(core).not.toMatch(/^(FORMER_SECRET_KEY|DNS_RESOLVERS|LOG_LEVEL)=/m);
});

test('a program reads the files of all programs and its own private keys, and not those of others', async () => {
  const folders = ['config', 'secrets/core', 'secrets/gateway'];
  // Docker has created the folders.
  for (const folder of folders) {
    const file = join(checkout, 'deploy', folder, 'file.pem');
    writeFileSync(file, `${folder}\n`);
    chownSync(file, 1000, 1000);
    chmodSync(file, 0o400);
  }
  for (const [service, own] of [
    ['core', 'secrets/core'],
    ['worker', 'secrets/core'],
    ['gateway', 'secrets/gateway'],
  ] as const) {
    expect(await compose('exec', service, 'sh', '-c', 'cat /config/* /secrets/*')).toBe(`config\n${own}\n`);
    await expect(compose('exec', service, 'touch', '/secrets/x')).rejects.toThrow('Read-only file system');
  }
});

test('programs run without rights, on a read-only file system, from an image without build tools', async () => {
  for (const program of PROGRAMS) {
    expect((await compose('exec', program, 'id', '-u')).trim()).toBe('1000');
    await expect(compose('exec', program, 'touch', '/app/x')).rejects.toThrow('Read-only file system');
    expect(await compose('exec', program, 'grep', 'CapEff', '/proc/1/status')).toMatch(/\t0+$/m);
  }
  const tools =
    'ls node_modules node_modules/@* | grep -E "^(typescript|vitest|biome|vite|node-linux.*|linux-x64)$" || true';
  expect(await compose('exec', 'core', 'sh', '-c', tools)).toBe('');
  const { stdout } = await run('docker', ['image', 'inspect', 'signpost', 'node:26-slim']);
  const [image, base] = JSON.parse(stdout) as { Size: number; Config: { Labels: Record<string, string> } }[];
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  expect(image?.Config.Labels['org.opencontainers.image.version']).toBe(version);
  const added = ((image?.Size ?? 0) - (base?.Size ?? 0)) / 1e6;
  console.log(`image: ${added.toFixed(0)} MB on a base of ${((base?.Size ?? 0) / 1e6).toFixed(0)} MB`);
  expect(added).toBeLessThan(120);
});

test('no program is a superuser of Postgres', async () => {
  const psql = ['exec', 'postgres', 'psql', '--username=postgres', '--tuples-only', '--no-align', '--command'];
  const roles = 'select usename, usesuper from pg_user order by 1';
  expect((await compose(...psql, roles)).trim().split('\n')).toEqual([
    'postgres|t',
    'signpost|f',
    'signpost_gateway|f',
  ]);
  const connected = `select distinct usename from pg_stat_activity where datname = 'signpost' and usename = 'postgres'`;
  expect(await compose(...psql, connected)).toBe('');
});

test('the command line works in the container of a core', async () => {
  let printed = '';
  for (const command of documented('account create --name Trattoria').split('\n')) {
    printed += await sh(command.replace('acct_…', latestId(printed, 'acct')).replace('qr_…', latestId(printed, 'qr')));
  }
  account = latestId(printed, 'acct');
  expect(printed).toContain('https://example.com/menu');
  expect(readFileSync(join(checkout, 'code.png')).subarray(1, 4).toString()).toBe('PNG');
});

test('the dashboard shows its pages to a member with a link', async () => {
  const address = 'http://localhost:8090';
  await sh('docker compose --profile dashboard up --detach --wait --no-recreate dashboard');
  const member = ['--account', account, '--email', 'anna@example.com'];
  await compose('exec', 'core', 'signpost', 'member', 'add', ...member, '--role', 'owner');
  const link = new URL((await compose('exec', 'core', 'signpost', 'dashboard', 'link', ...member)).trim());
  expect(link.href).toMatch(/^http:\/\/localhost:8090\/sign-in\/link#\w+/);
  const signedIn = await fetch(`${address}/sign-in/link`, {
    method: 'POST',
    body: new URLSearchParams({ token: link.hash.slice(1) }),
    headers: { origin: address },
    redirect: 'manual',
  });
  expect(signedIn.status).toBe(303);
  const cookie = signedIn.headers
    .getSetCookie()
    .map((each) => each.split(';')[0])
    .join('; ');
  const session = await fetch(`${address}/session`, { headers: { cookie } });
  expect(await session.json()).toMatchObject({ account: { id: account }, member: { role: 'owner' } });
  const page = await (await fetch(address)).text();
  const [, script = ''] = /<script[^>]+src="(\/assets\/[^"]+)"/.exec(page) ?? [];
  expect((await fetch(address + script)).headers.get('content-type')).toMatch(/javascript/);
  expect(await compose('exec', 'dashboard', 'ls', '/config', '/secrets')).toBe('/config:\nfile.pem\n\n/secrets:\n');
  await compose('rm', '--stop', '--force', 'dashboard');
});

test('cores can be scaled', async () => {
  await sh(documented('--scale core=2'));
  expect(await inspect('{{.State.Health.Status}}', ['core'])).toEqual(['healthy', 'healthy']);
  const statuses = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const { status } = await fetch(`${API}/folders`, { headers: { authorization: `Bearer ${key}` } });
      return status;
    }),
  );
  expect(new Set(statuses)).toEqual(new Set([200]));
});

test('a gateway that is killed while it answers scans loses none', async () => {
  const killed = new AbortController();
  const scanning = (async () => {
    while (!killed.signal.aborted) await scan().catch(() => undefined);
  })();
  await vi.waitFor(() => expect(scans.answered).toBeGreaterThan(50), EVENTUALLY);
  await compose('kill', 'gateway');
  killed.abort();
  await scanning;
  await compose('up', '--detach', '--wait', '--no-recreate', 'gateway');
  expect(await scan()).toBe(302);
  await expectCounted();
});

test('every program stops in order, and starts again with all data', async () => {
  const [stop = '', start = ''] = documented('compose stop').split('\n');
  await seconds(stop, () => sh(stop));
  const codes = await inspect('{{index .Config.Labels "com.docker.compose.service"}} {{.State.ExitCode}}', []);
  // 143: a JVM ends with this code after it was asked to stop.
  expect(new Set(codes)).toEqual(
    new Set([...PROGRAMS, 'first-account', 'postgres'].map((service) => `${service} 0`).concat('kafka 143')),
  );
  await seconds('docker compose up --wait, again', () => sh(start));
  expect(await scan()).toBe(302);
  await expectCounted();
  expect((await sh('docker compose logs --no-log-prefix first-account')).match(/sk_live_/g)).toHaveLength(2);
});

test('published scans can be reshipped, and the database can be dumped', async () => {
  const reship = documented('scans reship').trim().replace('2027-01-31T02:00:00Z', new Date(0).toISOString());
  expect(await sh(reship)).toMatch(/\d/);
  await expectCounted();
  await sh(`${documented('pg_dump')}\ntest "$(head -c 5 signpost-*.dump)" = PGDMP`);
});

test('no secret is in the logs, but for the key that is printed once', async () => {
  const env = readFileSync(join(checkout, '.env'), 'utf8');
  const secrets = [...env.matchAll(/^\w+=([0-9a-zA-Z+/=]{32,})$/gm)].map(([, secret = '']) => secret);
  expect(secrets).toHaveLength(5);
  const services = (await compose('config', '--services')).trim().split('\n');
  const logs = await compose('logs', ...services.filter((service) => service !== 'first-account'));
  expect(logs).toContain('"process":"gateway"');
  for (const secret of [...secrets, key]) expect(logs).not.toContain(secret);
  const printed = await compose('logs', 'first-account');
  for (const secret of secrets) expect(printed).not.toContain(secret);
  expect(account).toMatch(/^acct_/);
});

test('in production, Caddy, two gateways and two cores serve while one of each is replaced', async () => {
  // So that this step can also run alone: `npm run test:containers -- -t production`.
  await sh('[ -f .env ] || sh deploy/make-env.sh .env');
  await sh('docker compose down --volumes && docker compose up --detach --wait postgres kafka');
  // The documented commands create these roles on a Postgres of the operator.
  const psql = 'docker compose exec -T postgres psql --username=postgres';
  await sh(`${psql} -c 'drop database signpost' -c 'drop role signpost' -c 'drop role signpost_gateway'`);
  const settings = documented('ACME_EMAIL')
    .replaceAll('db.internal', 'postgres')
    .replaceAll('?sslmode=verify-full', '');
  await sh(settings.replace(/^KAFKA_BROKERS=.*/m, 'KAFKA_BROKERS=kafka:9092'));
  const trusted = '172.30.80.0/24,fd00:80::/64';
  appendFileSync(join(checkout, 'deploy/.env'), `TRUST_PROXY=${trusted}\n`);
  await sh(documented('psql postgres://').replace('psql postgres://postgres@db.internal/postgres', psql));
  // Caddy is its own certificate authority here, and the cores' network the one of Postgres and Kafka.
  const caddyfile = join(checkout, 'deploy/caddy/Caddyfile');
  const local = readFileSync(caddyfile, 'utf8').replace('email {$ACME_EMAIL}', 'local_certs\n\tskip_install_trust');
  writeFileSync(caddyfile, local);
  const network = 'networks: { cores: { name: signpost_default, external: true } }\n';
  writeFileSync(join(checkout, 'network.yml'), network);
  const files = ['-f', 'deploy/docker-compose.production.yml', '-f', 'network.yml'];
  const production = composeIn(files);
  const adapted = (block: string) => block.replaceAll('-f deploy/docker-compose.production.yml', files.join(' '));

  const [start = '', create = ''] = adapted(documented('exec core-1 signpost account')).split('\n');
  await seconds('production: docker compose up --wait', () => sh(start));
  [key = ''] = /sk_live_\w+/.exec(await sh(create)) ?? [];
  const migrated = await production('run', '--rm', '--no-deps', 'core-1', 'node', 'src/migrate.ts');
  expect(migrated).toContain('The schema is up to date');
  expect((await production('exec', 'gateway-1', 'printenv', 'TRUST_PROXY')).trim()).toBe(trusted);
  // So that this step can also run alone, in which case the folders are empty.
  writeFileSync(join(checkout, 'deploy/secrets/core/production.pem'), '');
  expect(await production('exec', 'core-2', 'ls', '/secrets')).toContain('production.pem');
  for (const gateway of ['gateway-1', 'gateway-2']) {
    expect(await production('exec', gateway, 'ls', '/secrets')).not.toContain('production.pem');
  }
  const curl = `curl --silent --show-error --insecure --max-time 20 --resolve sign.example:443:127.0.0.1`;
  const created = await sh(
    `${curl} https://sign.example/api/v1/qr-codes -H 'Authorization: Bearer ${key}' -d '{"target_url":"https://example.com/"}'`,
  );
  const url = /https:\/\/sign\.example\/r\/\w+/.exec(created)?.[0] ?? created;
  Object.assign(scans, { answered: 0, sent: 0 });
  const request = () => {
    scans.sent++;
    return sh(`${curl} -o /dev/null -w '%{http_code} %{redirect_url}' ${url}`);
  };
  let isReloading = false;
  const redirect = async () => {
    // As browsers do, which open another connection if one is closed without a response.
    const redirected = await request().catch((error: Error) => {
      if (!isReloading || !NO_RESPONSE.test(error.message)) throw error;
      return request();
    });
    expect(redirected).toBe('302 https://example.com/');
    scans.answered++;
  };
  await redirect();
  for (const path of ['readyz', 'tls/ask?domain=sign.example']) {
    expect(await sh(`${curl} -o /dev/null -w '%{http_code}' 'https://sign.example/${path}'`)).toBe('404');
  }
  const other = 'curl --silent --insecure --resolve other.example:443:127.0.0.1 https://other.example/';
  await expect(sh(other)).rejects.toThrow();
  await expect(production('exec', 'caddy', 'caddy', 'version')).resolves.toBeTruthy();

  const replaced = new AbortController();
  const scanning = (async () => {
    while (!replaced.signal.aborted) await redirect();
  })();
  for (const command of adapted(documented('--force-recreate gateway-1')).split('\n')) {
    await Promise.race([sh(command), scanning]);
  }
  // Editors and git replace files instead of writing them.
  writeFileSync(`${caddyfile}.new`, `${local}\nhttps://other.example {\n\trespond "read again"\n}\n`);
  renameSync(`${caddyfile}.new`, caddyfile);
  isReloading = true;
  await Promise.race([sh(adapted(documented('caddy reload'))), scanning]);
  // Caddy creates the certificate of a new host after it has answered the reload.
  await vi.waitFor(async () => expect(await sh(other)).toBe('read again'), EVENTUALLY);
  isReloading = false;
  await production('stop', 'core-1');
  const folders = `${curl} https://sign.example/api/v1/folders -H 'Authorization: Bearer ${key}'`;
  for (let calls = 0; calls < 10; calls++) expect(await sh(folders)).toContain('"success":true');
  await production('start', 'core-1');
  replaced.abort();
  await scanning;
  await expectCounted('core-2', production);
});

test('every command of the page was run', () => {
  expect([...unused]).toEqual([]);
});
