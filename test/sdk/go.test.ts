import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { missingGo } from '../../sdk/generate/go.ts';
import { contract } from '../contract/client.ts';
import { expectRetried } from './expect-retried.ts';
import { startFaultyProxy } from './faulty-proxy.ts';

const run = promisify(execFile);
const MODULE = resolve('sdk/go');
const missing = missingGo();
const suite = `the Go SDK${missing === undefined ? '' : `: ${missing}`}`;

/** Compiling the standard library the first time takes most of it. */
const TIMEOUT_MS = 180_000;

describe.skipIf(missing !== undefined && !process.env.CI)(suite, { timeout: TIMEOUT_MS }, () => {
  const api = contract();

  async function go(args: readonly string[], env: Readonly<Record<string, string>>, cwd = MODULE): Promise<string> {
    const done = run('go', args, { cwd, env: { ...process.env, ...env } });
    // A failed test says why on its standard output.
    return (await done.catch(({ stdout, stderr }) => Promise.reject(new Error(`${stdout}${stderr}`)))).stdout;
  }

  test('a round trip of every operation over failing connections creates everything once', async () => {
    const { apiKey } = await api.account({ plan: Plan.ENTERPRISE });
    const limited = await api.account({ overrides: { codeLimit: 3n } });
    const proxy = await startFaultyProxy(api.signpost.url);
    onTestFinished(() => proxy.close());
    const env = { SIGNPOST_API_KEY: apiKey, SIGNPOST_BASE_URL: proxy.url, LIMITED_API_KEY: limited.apiKey };
    await go(['test', '-count=1', './...'], env);
    expectRetried(proxy.attempts);
  });

  test('the example of its README runs', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'signpost-sdk-go-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const readme = readFileSync(join(MODULE, 'README.md'), 'utf8');
    await writeFile(join(folder, 'main.go'), /```go example\n(.*?)```/s.exec(readme)?.[1] ?? '');
    await go(['mod', 'init', 'example.com/example'], {}, folder);
    const replaced = `example.com/signpost=${MODULE}`;
    await go(['mod', 'edit', '-require', 'example.com/signpost@v1.3.0', '-replace', replaced], {}, folder);
    const { apiKey } = await api.account();
    const env = { SIGNPOST_API_KEY: apiKey, SIGNPOST_BASE_URL: api.signpost.url };
    expect(await go(['run', '.'], env, folder)).toMatch(/^http\S+\/r\/\w{7}\n2 codes created\n/);
  });

  test('is formatted, and vet finds nothing', async () => {
    expect((await run('gofmt', ['-l', '.'], { cwd: MODULE })).stdout).toBe('');
    await go(['vet', './...'], {});
  });

  test('its folder, which is the module, contains the license', () => {
    expect(readFileSync(join(MODULE, 'LICENSE'), 'utf8')).toBe(readFileSync('LICENSE', 'utf8'));
  });
});
