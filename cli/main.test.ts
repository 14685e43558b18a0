import { execFile } from 'node:child_process';
import { beforeAll, expect, test } from 'vitest';
import { type Signpost, startSignpost } from '../test/harness/processes.ts';

let signpost: Signpost;
beforeAll(async () => {
  signpost = await startSignpost();
});

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function run(args: readonly string[], env: Record<string, string> = {}): Promise<Outcome> {
  const { corePort, serviceToken } = signpost;
  const variables = { ...process.env, CORE_PORT: String(corePort), SERVICE_TOKEN: serviceToken, ...env };
  return new Promise((resolve) => {
    execFile(process.execPath, ['cli/main.ts', ...args], { env: variables }, (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr });
    });
  });
}

async function json<Value>(...args: string[]): Promise<Value> {
  const { code, stdout, stderr } = await run([...args, '--json']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout.trimEnd().split('\n')).toHaveLength(1);
  return JSON.parse(stdout) as Value;
}

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
  const { api_key } = await json<{ api_key: string }>('key', 'rotate', '--account', made.account_id);
  expect([await status(made.api_key), await status(api_key)]).toEqual([401, 200]);
});

test('a scan is in the ledger once it is recorded, every counter agrees, and it is deleted on request', async () => {
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
    .poll(() => json('scans', 'audit'), { timeout: 20_000, interval: 200 })
    .toMatchObject({ recorded: 3, duplicates: 0, dead_lettered: 0, waiting: 0, rows: 3, counted: 3, differences: [] });
  expect((await run(['scans', 'audit'])).stdout).toMatch(/recorded +3\n.*Every counter tells what the scans tell\./s);
  expect(await run(['scans', 'audit', '--from', 'yesterday'])).toMatchObject({ code: 2 });

  expect(await json('scans', 'delete', '--account', account_id)).toEqual({ account_id, deleted: true });
  expect(await json('scans', 'audit')).toMatchObject({ recorded: 3, deleted: 3, rows: 0, counted: 0, differences: [] });
});

test('people get a table', async () => {
  await json('account', 'create', '--name', 'Osteria', '--plan', 'free');
  const { stdout } = await run(['account', 'list']);
  expect(stdout).toMatch(/^id +name +plan/);
  expect(stdout).toContain('Osteria');
});

test('what was typed wrong ends with 2 and says what is needed', async () => {
  const { code, stderr, stdout } = await run(['account', 'create', '--name', 'x', '--plan', 'gold', '--json']);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain('free, business, scale, enterprise');
  expect((await run(['account', 'create'])).code).toBe(2);
});

test('what the core refuses ends with 1 and its sentence', async () => {
  const { code, stderr, stdout } = await run(['account', 'show', '--account', 'acct_none']);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toBe('Name an open account in `signpost-account`: acct_….\n');
});

test('a core that is away and a token that is missing are a sentence each', async () => {
  expect(await run(['account', 'list'], { CORE_PORT: '1' })).toMatchObject({
    code: 1,
    stderr: 'The core does not answer: is it running, and is CORE_PORT its port?\n',
  });
  const { code, stderr } = await run(['account', 'list'], { SERVICE_TOKEN: '', DATA_DIR: '/nowhere' });
  expect(code).toBe(1);
  expect(stderr).toMatch(/^No service token: /);
});

test('help shows the commands and an example', async () => {
  const { code, stdout } = await run(['--help']);
  expect(code).toBe(0);
  expect(stdout).toContain('account');
  expect(stdout).toContain('Example:');
});
