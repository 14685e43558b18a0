import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify, stripVTControlCharacters } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { LOOPBACK } from '../../local/free-port.ts';
import { missingGo } from '../../sdk/generate/go.ts';
import { missingPython, pythonProgram } from '../../sdk/generate/python-environment.ts';
import { type Signpost, startSignpost } from '../harness/processes.ts';

/** The clients of docs/internal-callers.md, generated as the page describes: `npm run test:clients`. */

const run = promisify(execFile);
const page = readFileSync('docs/internal-callers.md', 'utf8');
const FOLDER = resolve('test/clients');
const BUILD = join(FOLDER, 'build');
/** The first time, plugins and packages are downloaded and compiled. */
const TIMEOUT_MS = 300_000;
const PLUGINS = [
  'google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12',
  'google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2',
];

let signpost: Signpost;
let accountId: string;

beforeAll(async () => {
  signpost = await startSignpost({ gateways: 0 });
  ({ accountId } = await signpost.createAccount());
});

function snippet(name: string): string {
  const code = new RegExp(`\`\`\`${name}\n(.*?)\`\`\``, 's').exec(page)?.[1];
  if (code === undefined) throw new Error(`the page has no snippet ${name}`);
  return code;
}

/** Empties and returns the build folder of a client. */
async function emptyFolder(name: string): Promise<string> {
  const folder = join(BUILD, name);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  return folder;
}

async function output(program: string, args: readonly string[], cwd: string, more = {}): Promise<string> {
  const env = {
    ...process.env,
    CORE_ADDRESS: `${LOOPBACK}:${signpost.grpcPort}`,
    SERVICE_TOKEN: signpost.serviceToken,
    ACCOUNT: accountId,
    ...more,
  };
  const done = run(program, args, { cwd, env });
  // Maven and Go print errors on either.
  return (await done.catch(({ stdout, stderr }) => Promise.reject(new Error(`${stdout}${stderr}`)))).stdout;
}

const scanUrl = () => new RegExp(`^${signpost.url}/r/\\w{7}$`);

/** Skipped with the reason in its name; with `CI=true`, a failure. */
function client(language: string, missing: string | undefined, run: () => Promise<string>): void {
  const name = `in ${language}${missing === undefined ? '' : `: ${missing}`}`;
  test.skipIf(missing !== undefined && !process.env.CI)(name, { timeout: TIMEOUT_MS }, async () => {
    // Maven prints control characters also in batch mode.
    expect(stripVTControlCharacters(await run()).trim()).toMatch(scanUrl());
  });
}

describe('a client that creates a code and reads it back', () => {
  client('Go', missingGo(), async () => {
    const bin = await emptyFolder('bin');
    for (const plugin of PLUGINS) await output('go', ['install', plugin], BUILD, { GOBIN: bin });
    const program = join(await emptyFolder('go-client'), 'main.go');
    await writeFile(program, snippet('go client'));
    const commands = snippet('sh go module')
      .replaceAll(/\bbuild\b/g, 'test/clients/build')
      // Pinned versions in place of the newest ones.
      .replace(/^go mod init .+$/m, `cp '${FOLDER}'/go/* '${program}' .`)
      .replace(/^go mod tidy$/m, '');
    return output('sh', ['-ec', commands], '.', { PATH: `${bin}:${process.env.PATH}` });
  });

  client('Python', missingPython(), async () => {
    const folder = await emptyFolder('python');
    const python = pythonProgram(join(FOLDER, 'python'), 'python');
    const stubs = snippet('sh python stubs').replace('python3', python).replaceAll('build/', 'test/clients/build/');
    await output('sh', ['-ec', stubs], '.');
    await writeFile(join(folder, 'client.py'), snippet('python client'));
    return output(python, ['client.py'], folder);
  });

  client('Java', missingMaven(), async () => {
    const folder = await emptyFolder('java');
    await writeFile(join(folder, 'Client.java'), snippet('java client'));
    return output('mvn', ['--quiet', '--batch-mode', 'compile', 'exec:java'], join(FOLDER, 'java'));
  });

  client('TypeScript', undefined, async () => {
    const folder = await emptyFolder('typescript');
    const stubs = snippet('sh typescript stubs').replace('--output build', '--output test/clients/build');
    await output('sh', ['-ec', stubs], '.');
    await writeFile(join(folder, 'client.ts'), snippet('ts client'));
    return output(process.execPath, ['client.ts'], folder);
  });
});

function missingMaven(): string | undefined {
  const { status } = spawnSync('mvn', ['--version']);
  return status === 0 ? undefined : 'Maven and Java 17 are missing (apt-get install maven).';
}
