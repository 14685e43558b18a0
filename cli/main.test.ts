import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { newAuthority } from '../test/harness/certificates.ts';
import { type Signpost, startSignpost } from '../test/harness/processes.ts';
import { commandLine } from './cli.fixture.ts';

let signpost: Signpost;
beforeAll(async () => {
  signpost = await startSignpost();
});

const { run, json, unfulfilled } = commandLine(() => signpost);

const status = async (key: string) =>
  (await fetch(`${signpost.url}/api/v1/qr-codes`, { headers: { authorization: `Bearer ${key}` } })).status;

test('an account is created with its overrides, shown, listed, and its key works and rotates', async () => {
  const made = await json<{ account_id: string; api_key: string }>(
    ...['account', 'create', '--name', 'Trattoria', '--plan', 'business', '--monthly-quota', '500', '--qr-limit', '3'],
  );
  expect(made.account_id).toMatch(/^acct_/);
  expect(await status(made.api_key)).toBe(200);
  const shown = await json<Record<string, unknown>>('account', 'show', '--account', made.account_id);
  expect(shown).toMatchObject({
    name: 'Trattoria',
    plan: 'business',
    requests_used: 1,
    monthly_quota: 500,
    qr_limit: 3,
  });
  const listed = await json<{ id: string }[]>('account', 'list');
  expect(listed.map(({ id }) => id)).toContain(made.account_id);
  const { api_key } = await json<{ api_key: string }>('key', 'rotate', '--account', made.account_id, '--yes');
  expect([await status(made.api_key), await status(api_key)]).toEqual([401, 200]);
});

test('published events that the log has lost are found and published again', async () => {
  const { api_key } = await json<{ api_key: string }>('account', 'create', '--name', 'Café', '--plan', 'business');
  for (const target_url of ['https://example.com/1', 'https://example.com/2']) {
    const answer = await fetch(`${signpost.url}/api/v1/qr-codes`, {
      method: 'POST',
      headers: { authorization: `Bearer ${api_key}` },
      body: JSON.stringify({ target_url }),
    });
    expect(answer.status).toBe(201);
  }
  interface Audit {
    kept_from: string;
    events: { published: number; found: number; missing: number };
    routes: Audit['events'];
  }
  const audit = (...more: string[]) => json<Audit>('events', 'audit', ...more);
  const incomplete = () => unfulfilled<Audit>('events', 'audit');
  const EVENTUALLY = { interval: 200 };
  await expect.poll(async () => (await audit()).routes.published, EVENTUALLY).toBeGreaterThanOrEqual(2);
  const { kept_from, events, routes } = await audit();
  expect([events.missing, routes.missing]).toEqual([0, 0]);
  expect(Date.parse(kept_from)).toBeGreaterThan(Date.now() - 600_000);

  const client = new pg.Client({ connectionString: signpost.databaseUrl });
  await client.connect();
  await client.query(`delete from log_records where topic ~ 'events|routes'`);
  await client.end();
  expect((await incomplete()).events).toEqual({ published: events.published, found: 0, missing: events.published });
  const since = new Date(Date.now() + 3_600_000).toISOString();
  expect((await audit('--since', since)).events).toEqual({ published: 0, found: 0, missing: 0 });
  const ahead = await run(['events', 'audit', '--since', '2099-01-01']);
  expect(ahead).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/\n\nPostgres keeps nothing of that time\.\n$/),
  });
  expect(await json('events', 'republish', '--since', since)).toEqual({ events: 0, routes: 0 });

  expect(await json('events', 'republish')).toEqual({ events: events.published, routes: routes.published });
  expect((await run(['events', 'audit', '--json'])).stdout).toContain(JSON.stringify(events));
  await expect.poll(async () => (await run(['events', 'audit'])).code, EVENTUALLY).toBe(0);
  expect(await json('events', 'republish')).toEqual({ events: 0, routes: 0 });
  expect(await json('events', 'republish', '--all')).toMatchObject({ events: events.published });
  expect((await run(['events', 'audit', '--since', 'yesterday'])).code).toBe(2);
  expect((await run(['events', 'audit'])).stdout).toMatch(/^topic +published +found +missing\nevents +\d+ +\d+ +0\n/);
});

test('a recorded scan is in the ledger, all counters agree, and it is deleted on request', async () => {
  const { account_id, api_key } = await json<{ account_id: string; api_key: string }>(
    ...['account', 'create', '--name', 'Bar', '--plan', 'business'],
  );
  const made = await fetch(`${signpost.url}/api/v1/qr-codes`, {
    method: 'POST',
    headers: { authorization: `Bearer ${api_key}` },
    body: JSON.stringify({ target_url: 'https://example.com/' }),
  });
  const { data } = (await made.json()) as { data: { scan_url: string } };
  for (let scan = 0; scan < 3; scan++) await fetch(data.scan_url, { redirect: 'manual' });
  await expect
    .poll(() => json('scans', 'audit'), { interval: 200 })
    .toMatchObject({
      answered: 3,
      spooled: 3,
      published: 3,
      recorded: 3,
      duplicates: 0,
      dead_lettered: 0,
      waiting: 0,
      rows: 3,
      counted: 3,
      differences: [],
    });
  expect((await run(['scans', 'audit'])).stdout).toMatch(/recorded +3\n.*All counters agree with the scans\./s);
  expect(await run(['scans', 'audit', '--from', 'yesterday'])).toMatchObject({ code: 2 });
  expect(await run(['scans', 'audit', '--from', '2026-01-02', '--to', '2026-01-01'])).toEqual({
    code: 2,
    stdout: '',
    stderr: '--to: must not be before --from.\n',
  });
  const client = new pg.Client({ connectionString: signpost.databaseUrl });
  await client.connect();
  await client.query('update scan_days set scans = scans + 1');
  const { differences } = await unfulfilled<{ differences: object[] }>('scans', 'audit');
  expect(differences).toContainEqual(expect.objectContaining({ counter: 'scans', expected: 3, counted: 4 }));
  await client.query('update scan_days set scans = scans - 1');
  await client.end();

  expect(await json('scans', 'delete', '--account', account_id, '--yes')).toEqual({ account_id, deleted: true });
  expect(await json('scans', 'audit')).toMatchObject({
    answered: 3,
    spooled: 3,
    published: 3,
    recorded: 3,
    deleted: 3,
    rows: 0,
    counted: 0,
    differences: [],
  });
});

test('the output for people is a table', async () => {
  await json('account', 'create', '--name', 'Osteria', '--plan', 'free');
  const { stdout } = await run(['account', 'list']);
  expect(stdout).toMatch(/^id +name +plan/);
  expect(stdout).toContain('Osteria');
});

test('invalid usage exits with 2 and says what is needed', async () => {
  const { code, stderr, stdout } = await run(['account', 'create', '--name', 'x', '--plan', 'gold', '--json']);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain('free, business, scale, enterprise');
  expect((await run(['account', 'create'])).code).toBe(2);
  const unread = spawn(process.execPath, ['cli/main.ts', 'account', 'create'], { stdio: ['ignore', 'ignore', 'pipe'] });
  unread.stderr.destroy();
  expect(await once(unread, 'close')).toEqual([2, null]);
});

test('a call that the core rejects exits with 1 and its sentence', async () => {
  const { code, stderr, stdout } = await run(['account', 'show', '--account', 'acct_none']);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toBe('--account: there is no open account with this id.\n');
  const malformed = await run(['account', 'show', '--account', 'acct_ä']);
  expect(malformed).toMatchObject({ code: 2, stderr: expect.stringContaining('It must be the id of an account') });
  const long = ['account', 'create', '--name', 'x'.repeat(201), '--plan', 'free'];
  expect(await run(long)).toMatchObject({ code: 1, stderr: expect.stringMatching(/^--name: /) });
});

test('an unavailable core and a missing token are one sentence each', async () => {
  expect(await run(['account', 'list'], { CORE_PORT: '1' })).toMatchObject({
    code: 1,
    stderr: 'The core does not respond: is it running, and do CORE_HOST and CORE_PORT name it?\n',
  });
  const { code, stderr } = await run(['account', 'list'], { SERVICE_TOKEN: '', DATA_DIR: '/nowhere' });
  expect(code).toBe(1);
  expect(stderr).toMatch(/^No service token: .* \(no \/nowhere\/service-token\)\.\n$/);
  const folder = await mkdtemp(join(tmpdir(), 'signpost-cli-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const unreadable = join(folder, 'service-token');
  await mkdir(unreadable);
  expect(await run(['account', 'list'], { SERVICE_TOKEN: '', DATA_DIR: folder })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`(${unreadable} can't be read: EISDIR).`),
  });
  expect(await run(['account', 'list'], { SERVICE_TOKEN: 'x' })).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^The core rejects the token: set SERVICE_TOKEN/),
  });
});

test('what answers instead of a core is one sentence', async () => {
  const answered = async (env: Record<string, string>) => (await run(['account', 'list'], env)).stderr;
  const { certFile } = await newAuthority();
  // Depending on how much was sent when the connection was closed.
  const closed = 'The connection was closed before a response arrived; .* CORE_CA\\.';
  const noCore = (answer: string) =>
    `No core answers: do CORE_HOST and CORE_PORT .* CORE_CA match its certificate\\? \\((${answer})\\)`;
  for (const [env, sentence] of [
    [{ CORE_PORT: new URL(signpost.url).port }, noCore('Unimplemented')],
    [{ CORE_PORT: String(signpost.grpcPort) }, `${noCore('Parse Error.*')}|${closed}`],
    [{ CORE_PORT: new URL(signpost.databaseUrl).port || '5432' }, closed],
    [{ CORE_CA: certFile }, `${noCore('wrong version number|Client network socket disconnected.*')}|${closed}`],
  ] as const) {
    expect(await answered(env)).toMatch(new RegExp(`^(${sentence})\\n$`));
  }
  expect(await answered({ CORE_PORT: 'abc' })).toBe('CORE_PORT must be a port.\n');
  expect(await answered({ CORE_HOST: 'http://core' })).toBe('CORE_HOST must be a host.\n');
});

test('scans are reshipped only from the folder of a gateway', async () => {
  const env = { DATA_DIR: '/nowhere', DATABASE_URL: signpost.databaseUrl };
  expect(await run(['scans', 'reship', '--since', new Date().toISOString()], env)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("There is no /nowhere/spool: DATA_DIR must be the gateway's.\n"),
  });
});

test('no secret is printed when the token is a file of other secrets', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'signpost-cli-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'core.env');
  await writeFile(file, 'SECRET_KEY=hunter2\nSERVICE_TOKEN=hunter3\n');
  expect(await run(['account', 'list'], { SERVICE_TOKEN: '', SERVICE_TOKEN_FILE: file })).toEqual({
    code: 1,
    stdout: '',
    stderr:
      'The service token must consist of visible ASCII characters; SERVICE_TOKEN, or the file that it is read from, does not.\n',
  });
});

test('help shows the commands, variables, exit codes and an example, and the help of every command its options', async () => {
  const { code, stdout } = await run(['--help']);
  expect(code).toBe(0);
  for (const part of ['account', 'completion', 'SERVICE_TOKEN', 'Exit codes:', 'Examples:'])
    expect(stdout).toContain(part);
  const own = await run(['code', 'create-static', '--help']);
  expect(own.stdout).toContain('--wifi-ssid <name>');
  expect(own.stdout).toMatch(/^Usage: signpost code create-static --account <id> \[options\]$/m);
  expect(own.stdout).toContain('Example:');
});

test.each([
  [['help', 'foo'], "error: unknown command 'foo'"],
  [['help', 'code', 'foo'], "error: unknown command 'foo'"],
  [['code', 'help', 'foo'], "error: unknown command 'foo'"],
  [['code', 'list', '--acount', 'x'], "error: unknown option '--acount'\n(Did you mean --account?)"],
  [['code', 'list'], "error: required option '--account <id>' not specified"],
])('%j: the error names the mistake, and nothing else is printed', async (args, expected) => {
  expect(await run(args)).toEqual({ code: 2, stdout: '', stderr: `${expected}\n(add --help for usage)\n` });
});

test('an empty name is rejected in plain English', async () => {
  const rejected = await run(['account', 'create', '--name', '', '--plan', 'free']);
  const stderr = "error: option '--name <name>' must not be empty\n(add --help for usage)\n";
  expect(rejected).toEqual({ code: 2, stdout: '', stderr });
});

test('help shows the help of a command too', async () => {
  const { stdout } = await run(['code', 'create', '--help']);
  expect(stdout).toMatch(/^Usage: signpost code create /);
  for (const args of [
    ['help', 'code', 'create'],
    ['code', 'help', 'create'],
  ])
    expect(await run(args)).toEqual({ code: 0, stdout, stderr: '' });
});

test.skipIf(!existsSync('/dev/full'))('a result that a full disk has not kept ends with exit code 3', async () => {
  const command = (output: string, args = 'account create --name Trattoria --plan free --json') => {
    const env = { ...process.env, CORE_PORT: String(signpost.corePort), SERVICE_TOKEN: signpost.serviceToken };
    const line = `"$0" cli/main.ts ${args} ${output}`;
    return new Promise<unknown>((resolve) => {
      execFile('bash', ['-o', 'pipefail', '-c', line, process.execPath], { env }, (error, stdout, stderr) =>
        resolve([error?.code ?? 0, stdout, stderr]),
      );
    });
  };
  const lost = [3, '', "The result can't be written to standard output (ENOSPC).\n"];
  for (const args of [undefined, 'help', 'code create --help', '--version'])
    expect(await command('> /dev/full', args)).toEqual(lost);
  expect(await command('| true')).toEqual([0, '', '']);
});

test('the version and help need neither the protocol nor its messages, and a command only its own', async () => {
  const hook = `import { registerHooks } from 'node:module';
    registerHooks({ load(url, context, next) { process.stderr.write(url + '\\n'); return next(url, context); } });`;
  const loaded = async (...args: string[]) => {
    const preload = `--import=data:text/javascript,${encodeURIComponent(hook)}`;
    return (await run(args, { NODE_OPTIONS: preload })).stderr;
  };
  for (const args of [['--version'], ['--help']])
    expect(await loaded(...args)).not.toMatch(/protobuf|connectrpc|_pb\.ts/);
  const help = await loaded('domain', 'add', '--help');
  expect(help).toContain('cli/domain.ts');
  expect(help).not.toMatch(/connectrpc|cli\/webhook\.ts/);
});

test('a plan and its overrides are changed individually', async () => {
  const { account_id } = await json<{ account_id: string }>(
    ...['account', 'create', '--name', 'Trattoria', '--plan', 'business', '--qr-limit', '3', '--batch-limit', '7'],
  );
  const update = (...args: string[]) => json('account', 'update', '--account', account_id, ...args);
  const show = () => json<Record<string, unknown>>('account', 'show', '--account', account_id);
  expect(await update('--plan', 'scale', '--monthly-quota', '9')).toMatchObject({ id: account_id, plan: 'scale' });
  expect(await show()).toMatchObject({ monthly_quota: 9, qr_limit: 3, batch_limit: 7, name: 'Trattoria' });
  await update('--qr-limit', 'plan', '--name', 'Osteria');
  expect(await show()).toMatchObject({ monthly_quota: 9, qr_limit: 10_000, batch_limit: 7, name: 'Osteria' });
  const { code, stderr } = await run(['account', 'update', '--account', account_id, '--json']);
  const needed = 'Give at least one of --name, --plan, --monthly-quota, --qr-limit and --batch-limit.\n';
  expect({ code, stderr }).toEqual({ code: 2, stderr: needed });
  expect((await run(['account', 'update', '--account', account_id, '--qr-limit', 'many'])).code).toBe(2);
});

test('the audit log says who did what, and an account is closed permanently', async () => {
  const { account_id, api_key } = await json<{ account_id: string; api_key: string }>(
    ...['account', 'create', '--name', 'Trattoria', '--plan', 'business'],
  );
  await json('key', 'revoke', '--account', account_id, '--yes');
  expect(await status(api_key)).toBe(401);
  // Piping an answer into it confirms nothing.
  const unconfirmed = await run(['account', 'close', '--account', account_id, '--delete-data']);
  expect(unconfirmed).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('Add --yes to confirm') });
  const close = ['account', 'close', '--account', account_id, '--delete-data', '--yes'];
  const closed = await json<Record<string, unknown>>(...close);
  expect(closed).toMatchObject({ id: account_id, name: '(deleted)', closed_at: expect.any(String) });
  const entries = await json<Record<string, string>[]>('account', 'audit', '--account', account_id);
  expect(entries.map(({ action }) => action)).toEqual([
    'AccountsService/CloseAccount',
    'AccountsService/RevokeKey',
    'AccountsService/CreateAccount',
  ]);
  for (const { actor, subject } of entries) {
    expect(actor).toMatch(/^\S+ at the command line$/);
    expect(subject).toBe(account_id);
  }
  expect((await run(['key', 'rotate', '--account', account_id, '--yes'])).code).toBe(1);
});

test.runIf(process.platform === 'linux')(
  'a command that is not confirmed changes nothing and exits with 2',
  async () => {
    const { accountId, apiKey } = await signpost.createAccount();
    const command = `'${process.execPath}' cli/main.ts key revoke --account ${accountId}`;
    const env = { ...process.env, CORE_PORT: String(signpost.corePort), SERVICE_TOKEN: signpost.serviceToken };
    const [ctrlC, ctrlD] = ['\u0003', '\u0004'];
    for (const [answer, option] of [['n\r'], ['\r'], [ctrlC], [ctrlD], ['n\r', '--json']]) {
      // A terminal, by util-linux.
      const terminal = spawn('script', ['-qec', `${command} ${option ?? ''}`, '/dev/null'], { env });
      let output = '';
      terminal.stdout.on('data', (text) => {
        const wasAsked = output.includes('[y/N]');
        output += text;
        if (!wasAsked && output.includes('[y/N]')) terminal.stdin.write(answer);
      });
      expect(await once(terminal, 'close')).toEqual([2, null]);
      expect(output).toMatch(/\nNothing was changed\.\r\n$/);
      expect(output).not.toContain('Aborted');
    }
    expect(await status(apiKey)).toBe(200);
  },
);

test('without a terminal, --json confirms like --yes, before and after the command', async () => {
  const { accountId, apiKey } = await signpost.createAccount();
  const rotate = ['key', 'rotate', '--account', accountId];
  expect(await run(rotate)).toEqual({
    code: 2,
    stdout: '',
    stderr: 'The current key will stop working at once. Add --yes to confirm, as there is no terminal to ask.\n',
  });
  expect(await status(apiKey)).toBe(200);
  const { api_key } = await json<{ api_key: string }>(...rotate);
  expect([await status(apiKey), await status(api_key)]).toEqual([401, 200]);
  expect(await run(['--json', 'key', 'revoke', '--account', accountId])).toMatchObject({ code: 0, stderr: '' });
  expect(await status(api_key)).toBe(401);
});

test('members are added, listed, changed and removed', async () => {
  const { accountId } = await signpost.createAccount();
  const added = await json<{ id: string }>(
    ...['member', 'add', '--account', accountId, '--email', 'anna@example.com', '--role', 'editor'],
  );
  expect(added).toEqual({ id: expect.stringMatching(/^mbr_/), email: 'anna@example.com', role: 'editor' });
  expect(await json('member', 'list', '--account', accountId)).toEqual([added]);
  const update = ['member', 'update', '--account', accountId, '--id', added.id, '--role', 'owner'];
  const changed = { ...added, role: 'owner' };
  expect(await json(...update)).toEqual(changed);
  const remove = ['member', 'remove', '--account', accountId, '--id', added.id, '--yes'];
  expect(await run(remove)).toMatchObject({ code: 1, stderr: expect.stringContaining('the last owner') });
  await json('member', 'add', '--account', accountId, '--email', 'ben@example.com', '--role', 'owner');
  expect(await json(...remove)).toEqual(changed);
  expect((await run(['member', 'add', '--account', accountId, '--email', 'x', '--role', 'king'])).code).toBe(2);
});

test('a link to the dashboard has a token in its fragment, and begins with DASHBOARD_URL', async () => {
  const { accountId } = await signpost.createAccount();
  await json('member', 'add', '--account', accountId, '--email', 'anna@example.com', '--role', 'editor');
  const link = ['dashboard', 'link', '--account', accountId, '--email', 'ANNA@example.com'];
  const { url } = await json<{ url: string }>(...link);
  expect(url).toMatch(/^http:\/\/localhost:8090\/sign-in\/link#[\w-]{43}$/);
  const otherPort = await run(link, { DASHBOARD_PORT: '8123' });
  expect(otherPort.stdout).toMatch(/^http:\/\/localhost:8123\/sign-in\/link#/);
  const elsewhere = await run(link, { DASHBOARD_URL: 'https://signpost.example/admin/' });
  expect(elsewhere).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^https:.*\/admin\/sign-in\/link#[\w-]{43}\n$/),
  });
  expect(elsewhere.stdout).not.toContain(url.split('#')[1]);
  expect(await run(link, { DASHBOARD_URL: 'signpost.example' })).toMatchObject({
    code: 1,
    stderr: 'DASHBOARD_URL must be an http or https address, such as https://signpost.example.\n',
  });
  const unknown = await run([...link.slice(0, -1), 'ben@example.com']);
  expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining('No member of this account') });
});

test('a core with TLS is verified by its certificate, and called with a client certificate instead of a token', async () => {
  const authority = await newAuthority();
  const [core, own] = [await authority.issue('core'), await authority.issue('billing')];
  const secured = await startSignpost({
    gateways: 0,
    env: { TLS_CERT: core.certFile, TLS_KEY: core.keyFile, TLS_CLIENT_CA: authority.certFile, ROLES: 'rpc' },
  });
  const tls = { CORE_CA: authority.certFile, CORE_CERT: own.certFile, CORE_KEY: own.keyFile, SERVICE_TOKEN: '' };
  const env = { ...tls, CORE_PORT: String(secured.corePort), DATA_DIR: '/nowhere' };
  expect(await run(['account', 'list', '--json'], env)).toEqual({ code: 0, stdout: '[]\n', stderr: '' });
  const withToken = { ...env, CORE_CERT: '', CORE_KEY: '', SERVICE_TOKEN: secured.serviceToken };
  expect((await run(['account', 'list'], withToken)).code).toBe(0);
  expect((await run(['account', 'list'], { ...withToken, SERVICE_TOKEN: 'x' })).code).toBe(1);
  const expired = await authority.issue('billing', -1);
  const rejected = { ...env, CORE_CERT: expired.certFile, CORE_KEY: expired.keyFile };
  expect(await run(['account', 'list'], rejected)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^The core rejects the certificate in CORE_CERT/),
  });
});

test('a certificate whose key or CA is missing or unreadable is one sentence', async () => {
  const { certFile, keyFile } = await newAuthority();
  const env = { CORE_CA: certFile, CORE_CERT: certFile, CORE_KEY: keyFile, SERVICE_TOKEN: '' };
  const refused = async (given: Record<string, string>) =>
    (await run(['account', 'list'], { ...env, ...given })).stderr;
  expect(await refused({ CORE_CA: '/nowhere.pem' })).toBe("CORE_CA /nowhere.pem can't be read (ENOENT).\n");
  for (const missing of ['CORE_KEY', 'CORE_CA'])
    expect(await refused({ [missing]: '' })).toBe('CORE_CERT requires CORE_KEY and CORE_CA.\n');
  expect(await refused({ CORE_CERT: '', SERVICE_TOKEN: 'x' })).toBe('CORE_KEY requires CORE_CERT.\n');
});
