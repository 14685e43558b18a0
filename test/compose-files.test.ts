import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { expect, onTestFinished, test } from 'vitest';
import { readVariables } from '../common/runtime/variables.ts';
import { DASHBOARD_VARIABLES } from '../dashboard/server/config.ts';
import { GATEWAY_VARIABLES } from '../gateway/config.ts';
import { AccountsService } from '../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { CORE_VARIABLES } from '../src/config.ts';

/** What the compose files and the described variables say of each other; test/containers runs the files. */

const PROGRAMS = { core: CORE_VARIABLES, gateway: GATEWAY_VARIABLES, dashboard: DASHBOARD_VARIABLES };

/** Set by the image, or the same in every container: others reach its ports by the names of services. */
const FIXED = ['DATA_DIR', 'PORT', 'CORE_PORT', 'GRPC_PORT', 'DASHBOARD_PORT'];

/** Set by the files that extend the services, as they depend on what else runs. */
const SET_BY_FILES = [
  'DATABASE_URL',
  'KAFKA_BROKERS',
  'PUBLIC_URL',
  'ROLES',
  'CORE_ADDRESS',
  'CORE_HOST',
  'DASHBOARD_URL',
];

/** Variables of the command line in the container of a core. */
const OF_THE_COMMAND_LINE = ['CORE_CA'];

/** The files that extend the services. */
const EXTENDING = ['docker-compose.yml', 'deploy/docker-compose.production.yml'];

const services = readFileSync('deploy/services.yml', 'utf8');

/** The lines of a service in deploy/services.yml. */
function linesOf(service: string): string {
  return new RegExp(`^  ${service}:\n((?: {4}.*\n|\n)*)`, 'm').exec(services)?.[1] ?? '';
}

/** The variables of a service in deploy/services.yml, with their values; undefined where they are passed on. */
function environment(service: string): Map<string, string | undefined> {
  const [, lines = ''] = /^ {4}environment:\n((?: {6}.*\n)*)/m.exec(linesOf(service)) ?? [];
  return new Map(
    [...lines.matchAll(/^ {6}([A-Z_]+):(?: (.+))?$/gm)].map(([, name = '', value]) => [name, value] as const),
  );
}

for (const [service, variables] of Object.entries(PROGRAMS)) {
  test(`every variable of a ${service} reaches its containers, and no other one`, () => {
    const described = Object.keys(variables).filter((name) => ![...FIXED, ...SET_BY_FILES].includes(name));
    const set = [...environment(service).keys()].filter(
      (name) => service !== 'core' || !OF_THE_COMMAND_LINE.includes(name),
    );
    expect(set.sort()).toEqual(described.sort());
  });

  test(`variables of a ${service} that are not set stay unset`, () => {
    const given = [...environment(service)].filter(([, value]) => value !== undefined);
    for (const [name, value = ''] of given) {
      // Required, the same everywhere, or empty by default, which programs take for unset.
      expect(`${name}: ${value}`).toMatch(/^(\w+): (0\.0\.0\.0|(\$\{[A-Z]+_\1:-)?\$\{\1:(-|\?[^}]+)\}\}?)$/);
    }
  });
}

test('the dashboard can keep its key while the cores get another one', () => {
  const ofCores = environment('core').get('SECRET_KEY');
  expect(environment('dashboard').get('SECRET_KEY')).toBe(`\${DASHBOARD_SECRET_KEY:-${ofCores}}`);
});

test('the folder with the private keys of a program is mounted in no other one', () => {
  /** What of the host is mounted. */
  const mounts = (text: string) => text.match(/(?<=[ [])\.[\w./-]*:\/[\w./-]+(:ro)?/g) ?? [];
  const expected = (service: string) => ['./config:/config:ro', `./secrets/${service}:/secrets:ro`];
  for (const service of Object.keys(PROGRAMS)) expect(mounts(linesOf(service))).toEqual(expected(service));
  expect(mounts(services)).toEqual(Object.keys(PROGRAMS).flatMap(expected));
  const [local, production] = EXTENDING.map((file) => mounts(readFileSync(file, 'utf8')));
  expect(local).toEqual([]);
  expect(production).toEqual(['./caddy:/etc/caddy:ro']);
});

test.each(EXTENDING)('%s sets the others', (file) => {
  const text = readFileSync(file, 'utf8');
  for (const name of SET_BY_FILES) expect(text).toMatch(new RegExp(`^ +${name}: .`, 'm'));
});

test.each([
  ['core', 'CORE_PORT_FILE', '/grpc.health.v1.Health/Check'],
  ['worker', 'METRICS_PORT_FILE', '/readyz'],
  ['gateway', 'PORT_FILE', '/readyz'],
  ['dashboard', 'DASHBOARD_PORT_FILE', '/readyz'],
])('the health check of a container with a %s reads the variables from files, too', async (program, portFile, path) => {
  const folder = mkdtempSync(join(tmpdir(), 'signpost-health-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const server = createServer(({ url, headers }, response) => {
    const status = headers.authorization === 'Bearer new' ? 'SERVING' : 'NOT_SERVING';
    response.writeHead(url === path ? 200 : 404).end(JSON.stringify({ status }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const [port, token] = [join(folder, 'port'), join(folder, 'token')];
  writeFileSync(port, String((server.address() as AddressInfo).port));
  writeFileSync(token, 'new,former\n');
  const env = { [portFile]: port, SERVICE_TOKEN_FILE: token };
  const check = spawn(process.execPath, ['deploy/health.ts', program], { env });
  expect(await once(check, 'close')).toEqual([0, null]);
});

test('.env and the folders of files are ignored by git, and not part of the image', () => {
  for (const path of ['.env', 'deploy/.env', 'deploy/config/ca.pem', 'deploy/secrets/core/key.pem']) {
    expect(spawnSync('git', ['check-ignore', '--quiet', path]).status).toBe(0);
  }
  expect(readFileSync('.dockerignore', 'utf8')).toMatch(/^\*\n/);
});

test('the version of the image is the one of the project', () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  expect(readFileSync('Dockerfile', 'utf8')).toContain(`org.opencontainers.image.version="${version}"`);
});

test('deploy/make-env.sh writes new secrets that programs accept, and replaces no file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'signpost-env-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const make = (...files: string[]) =>
    execFileSync('sh', ['deploy/make-env.sh', ...files], { encoding: 'utf8', stdio: 'pipe' });
  const file = join(folder, '.env');
  expect(make(file)).toBe('');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const written = readFileSync(file, 'utf8');
  expect(() => make(file)).toThrow('exists');
  expect(readFileSync(file, 'utf8')).toBe(written);

  const values = (text: string) => Object.fromEntries([...text.matchAll(/^(\w+)=(.+)$/gm)].map(([, ...pair]) => pair));
  const secrets = values(written);
  expect(new Set([...Object.values(secrets), ...Object.values(values(make()))]).size).toBe(10);
  expect(() =>
    readVariables(CORE_VARIABLES, { ...secrets, DATABASE_URL: 'postgres://localhost/signpost' }),
  ).not.toThrow();
  for (const password of Object.keys(secrets).filter((name) => name.endsWith('PASSWORD'))) {
    expect(secrets[password]).toMatch(/^[0-9a-f]{64}$/);
  }
});

test('the addresses that the first account is printed with have no double slash', async () => {
  const core = createServer(
    connectNodeAdapter({
      routes: ({ service }) =>
        service(AccountsService, { listAccounts: () => ({}), createAccount: () => ({ apiKey: 'sk_live_1' }) }),
    }),
  );
  await once(core.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void core.close());
  const { port } = core.address() as AddressInfo;
  const env = {
    PATH: process.env.PATH,
    CORE_PORT: String(port),
    SERVICE_TOKEN: 'x',
    PUBLIC_URL: 'http://sign.example/',
  };
  const { stdout } = await promisify(execFile)(process.execPath, ['deploy/first-account.ts'], { env });
  expect(stdout).toContain('http://sign.example/docs\n');
  expect(stdout).toContain('http://sign.example/api/v1/qr-codes');
});
