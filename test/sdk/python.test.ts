import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { missingPython, pythonProgram } from '../../sdk/generate/python-environment.ts';
import { contract } from '../contract/client.ts';
import { expectRetried } from './expect-retried.ts';
import { startFaultyProxy } from './faulty-proxy.ts';

const run = promisify(execFile);
const PACKAGE = resolve('sdk/python');
const missing = missingPython();
const suite = `the Python SDK${missing === undefined ? '' : `: ${missing}`}`;

describe.skipIf(missing !== undefined && !process.env.CI)(suite, () => {
  const api = contract();
  // The first time, packages are downloaded.
  beforeAll(() => void pythonProgram(PACKAGE, 'python'), 300_000);

  async function python(program: string, env: Readonly<Record<string, string>>, cwd = PACKAGE): Promise<string> {
    const { PATH } = process.env;
    const options = { cwd, env: { PATH, PYTHONPATH: PACKAGE, PYTHONDONTWRITEBYTECODE: '1', ...env } };
    return (await run(pythonProgram(PACKAGE, 'python'), [program], options)).stdout;
  }

  // Waiting for creations in flight alone takes 20 s.
  test('a round trip of every operation over failing connections creates everything once', {
    timeout: 180_000,
  }, async () => {
    const { apiKey } = await api.account({ plan: Plan.ENTERPRISE });
    const limited = await api.account({ overrides: { codeLimit: 3n } });
    const proxy = await startFaultyProxy(api.signpost.url);
    onTestFinished(() => proxy.close());
    const env = { SIGNPOST_API_KEY: apiKey, SIGNPOST_BASE_URL: proxy.url, LIMITED_API_KEY: limited.apiKey };
    await python('tests/round_trip.py', env);
    expectRetried(proxy.attempts);
  });

  test('the example of its README runs', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'signpost-sdk-python-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const readme = readFileSync(join(PACKAGE, 'README.md'), 'utf8');
    await writeFile(join(folder, 'example.py'), /```python example\n(.*?)```/s.exec(readme)?.[1] ?? '');
    const { apiKey } = await api.account();
    const env = { SIGNPOST_API_KEY: apiKey, SIGNPOST_BASE_URL: api.signpost.url };
    expect(await python('example.py', env, folder)).toMatch(/^http\S+\/r\/\w{7}\n2 codes created\n/);
  });

  test('can be imported beside the stubs of the gRPC services, whose package has the same name', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'signpost-sdk-python-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    await mkdir(join(folder, 'signpost/codes/v1'), { recursive: true });
    await writeFile(join(folder, 'signpost/codes/v1/codes_pb2.py'), 'NAME = "stubs"\n');
    const program = 'from signpost import Signpost\nfrom signpost.codes.v1 import codes_pb2\nprint(codes_pb2.NAME)\n';
    await writeFile(join(folder, 'both.py'), program);
    expect(await python('both.py', {}, folder)).toBe('stubs\n');
  });

  test('its types are complete and right, its version is that of the API', async () => {
    const { stdout } = await run(pythonProgram(PACKAGE, 'mypy'), ['--strict', 'signpost', 'tests'], {
      cwd: PACKAGE,
    }).catch((problems) => problems);
    expect(stdout).toMatch(/^Success/);
    const version = /^version = "(.+)"$/m.exec(readFileSync(join(PACKAGE, 'pyproject.toml'), 'utf8'))?.[1];
    expect(version).toBe(api.document.info.version);
  });

  test('its distributions contain the license', () => {
    expect(readFileSync(join(PACKAGE, 'LICENSE'), 'utf8')).toBe(readFileSync('LICENSE', 'utf8'));
    expect(readFileSync(join(PACKAGE, 'pyproject.toml'), 'utf8')).toMatch(/^license-files = \["LICENSE"\]$/m);
  });
});
