import { execFile, execFileSync, spawn } from 'node:child_process';
import { createHmac, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { callsOf } from '../../gateway/rest/reference/calls.ts';
import { guidePages } from '../../gateway/rest/reference/guide.ts';
import { freePort } from '../../local/free-port.ts';
import { signatures } from '../../src/webhooks/signature.ts';
import { type Account, contract } from '../contract/client.ts';
import { operationsOf } from '../contract/openapi-validation.ts';

/** The languages of programs in the guide, with the tools that run them. */
const LANGUAGES = {
  ts: { tool: process.execPath, prepare: async (file: string) => [process.execPath, file] },
  py: { tool: 'python3', prepare: async (file: string) => ['python3', file] },
  go: {
    tool: 'go',
    async prepare(file: string) {
      const program = file.replace(/\.go$/, '');
      await run('go', ['build', '-o', program, file]);
      return [program];
    },
  },
} as const;
type Language = keyof typeof LANGUAGES;

function isMissing(tool: string): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${tool}`]);
    return false;
  } catch {
    if (process.env.CI === 'true') throw new Error(`Tests of the guide need ${tool}.`);
    return true;
  }
}

function run(program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> {
  return new Promise((done, failed) => {
    execFile(program, args, { env: { ...process.env, ...env }, timeout: 100_000 }, (error, stdout, stderr) => {
      if (error) failed(new Error(`${error.message}\n${stderr}`));
      else done(stdout);
    });
  });
}

const api = contract({ env: { WEBHOOKS_ALLOW_PRIVATE: 'true' } });
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'signpost-guide-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** The ids and tokens that the guide shows, which stand for those of the account. */
const SHOWN = {
  code: 'qr_01kagcpn9te5gvjxq1rmm30w4h',
  short: 'h7Kq2Wd',
  batch: 'batch_01kagd1x2vfkdtx3d1y0w6z8qs',
};

interface Block {
  readonly language: string;
  readonly text: string;
}

/** The blocks of code of the guide, in order, for the Signpost that runs. */
const blocks = (): Block[] =>
  guidePages().flatMap((page) =>
    [...page.replaceAll('{base_url}', api.signpost.url).matchAll(/^```(\w+)\n([\s\S]*?)^```/gm)].map(
      ([, language = '', text = '']) => ({ language, text }),
    ),
  );

/** Runs lines of a shell as a reader would, in a folder of their own. */
function shell(script: string, account: Account): Promise<string> {
  const prelude = `
    set -e; cd '${folder}'
    command -v uuidgen >/dev/null || uuidgen() { cat /proc/sys/kernel/random/uuid; }
    curl() { command curl --silent --show-error "$@"; echo; }
    signpost() { (cd '${resolve('.')}' && '${process.execPath}' cli/main.ts "$@"); }`;
  const { corePort, serviceToken } = api.signpost;
  const env = { KEY: account.apiKey, CORE_PORT: String(corePort), SERVICE_TOKEN: serviceToken };
  return run('bash', ['-c', `${prelude}\n${script}`], env);
}

/** The structure of a JSON value: names and types, without the values, and one element of each array. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map(shapeOf);
  if (typeof value !== 'object' || value === null) return value === null ? null : typeof value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, shapeOf(each)]));
}

describe('the guide', () => {
  test('shows commands that do what it says, and responses as they are', async () => {
    const account = await api.account();
    const known: Record<string, string> = { 'sk_live_…': account.apiKey, 'acct_…': account.id };
    const resolved = (text: string) =>
      Object.entries(known).reduce((done, [from, to]) => done.replaceAll(from, to), text);
    let printed = '';
    let commands = 0;
    for (const { language, text } of blocks()) {
      if (language === 'sh' || language === 'console') {
        printed = await shell(resolved(text), account);
        commands++;
        known[SHOWN.code] ??= /"id":"(qr_\w{26})"/.exec(printed)?.[1] as string;
        known[SHOWN.short] ??= /"short_code":"(\w{7})"/.exec(printed)?.[1] as string;
        known[SHOWN.batch] ??= /(batch_\w{26})/.exec(printed)?.[1] as string;
        for (const [shown, actual] of Object.entries(known)) if (actual === undefined) delete known[shown];
      }
      if (language === 'json') {
        expect(shapeOf(JSON.parse(printed))).toEqual(shapeOf(JSON.parse(text)));
        const { error } = JSON.parse(text);
        if (error) expect(JSON.parse(printed).error).toBe(error);
      }
      if (language === 'http') {
        const lines = printed.replaceAll('\r', '').split('\n');
        for (const line of text.split('\n')) if (line) expect(lines).toContain(resolved(line));
      }
    }
    expect(commands).toBe(blocks().filter(({ language }) => ['sh', 'console'].includes(language)).length);
    expect(Object.keys(known)).toHaveLength(5);
    expect((await readFile(join(folder, 'code.svg'), 'utf8')).slice(0, 4)).toBe('<svg');
    expect((await readFile(join(folder, 'code.png'))).subarray(1, 4).toString()).toBe('PNG');
    const changed = await account.call<{ data: { target_url: string } }>('GET', `/qr-codes/${known[SHOWN.code]}`);
    expect(changed.body.data.target_url).toBe('https://example.com/winter-menu');
    // Two rows of the batch, and two creations: the retry of one created nothing.
    expect((await account.call<{ total: number }>('GET', '/qr-codes')).body.total).toBe(4);
  }, 120_000);

  test.for(Object.entries(LANGUAGES))(
    'reads all pages with its program in %s',
    { timeout: 120_000 },
    async ([language, { tool, prepare }], { skip }) => {
      skip(isMissing(tool), `${tool} is missing`);
      const account = await api.account();
      await account.call('POST', '/batches', {
        json: { rows: Array(250).fill({ target_url: 'https://example.com' }) },
      });
      const [program = '', ...args] = await prepare(await written(language as Language, 'next_cursor', 'Next_Cursor'));
      const printed = (await run(program, args, { KEY: account.apiKey })).trim().split('\n');
      expect(new Set(printed).size).toBe(250);
      expect(printed.filter((line) => !/^http.*\/r\/\w{7}$/.test(line))).toEqual([]);
    },
  );

  test.for(Object.entries(LANGUAGES))(
    'verifies signatures with its receiver in %s',
    { timeout: 120_000 },
    async ([language, { tool, prepare }], { skip }) => {
      skip(isMissing(tool), `${tool} is missing`);
      const account = await api.account();
      const port = await freePort();
      const url = `http://127.0.0.1:${port}/`;
      const file = await written(language as Language, 'webhook-signature');
      const [program = '', ...args] = await prepare(file);
      // In all languages it listens on the same port if `PORT` is not set.
      expect(await readFile(file, 'utf8')).toContain('3000');
      // The endpoint is added first, because its secret has to be known.
      const added = await shell(
        `signpost webhook add --account ${account.id} --url ${url} --events qr.created`,
        account,
      );
      const secret = /whsec_\S+/.exec(added)?.[0] ?? '';
      await expect(run(program, args, { SECRET: '', PORT: String(port) })).rejects.toThrow('SECRET is required');
      const receiver = spawn(program, args, { env: { ...process.env, SECRET: secret, PORT: String(port) } });
      let printed = '';
      for (const stream of [receiver.stdout, receiver.stderr]) stream.on('data', (text) => (printed += text));
      try {
        // The first test event, and its retry after 5 s, may come before the receiver listens; the next retry takes
        // minutes.
        await vi.waitFor(() => fetch(url), { timeout: 60_000, interval: 100 });
        await shell(`signpost webhook test --account ${account.id} --id ${/hook_\w+/.exec(added)?.[0]}`, account);
        expect(printed).toContain('webhook.test');
        const { id } = await account.create();
        // A receiver may print two events at the same time, so that their lines have their ends in common.
        const event = new RegExp(`evt_\\w{26} qr\\.created ${id}`);
        await vi.waitFor(() => expect(printed).toMatch(event), { timeout: 30_000, interval: 100 });
        await expectRefusals(url, secret);
        // A caller that disconnects in the middle of its body must not end the receiver.
        const aborted = connect(port, '127.0.0.1');
        aborted.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{');
        await once(aborted, 'connect');
        await sleep(200);
        aborted.resetAndDestroy();
        expect(await deliver(url, secret)).toBe(204);
      } finally {
        receiver.kill('SIGKILL');
      }
    },
  );
});

/** Writes the program of the guide that contains one of the texts to a file. */
async function written(language: Language, ...texts: readonly string[]): Promise<string> {
  const [program] = blocks().filter(
    (block) => block.language === language && texts.some((each) => block.text.includes(each)),
  );
  if (!program) throw new Error(`The guide has no such program in ${language}.`);
  const file = join(folder, `${randomUUID()}.${language === 'ts' ? 'mts' : language}`);
  await writeFile(file, program.text);
  return file;
}

interface Delivery {
  readonly body?: string;
  readonly sent?: string;
  readonly ageSeconds?: number;
  readonly signature?: (signature: string) => string;
}

/** Sends an event as Signpost does, or with the given faults; gives the status. */
async function deliver(url: string, secret: string, delivery: Delivery = {}): Promise<number> {
  const { body = '{"type":"qr.created","data":{"name":"schön"}}', sent = body, ageSeconds = 0 } = delivery;
  const timestamp = Math.floor(Date.now() / 1_000) - ageSeconds;
  const signature = signatures({ id: 'evt_1', timestamp, body }, [secret]);
  const headers = {
    'webhook-id': 'evt_1',
    'webhook-timestamp': String(timestamp),
    'webhook-signature': delivery.signature?.(signature) ?? signature,
  };
  return (await fetch(url, { method: 'POST', headers, body: sent })).status;
}

async function expectRefusals(url: string, secret: string): Promise<void> {
  const other = `whsec_${Buffer.from(randomUUID()).toString('base64')}`;
  expect(await deliver(url, secret)).toBe(204);
  // While a secret is being replaced there are two signatures.
  expect(await deliver(url, secret, { signature: (own) => `v1,AAAA ${own}` })).toBe(204);
  expect(await deliver(url, other)).toBe(400);
  expect(await deliver(url, secret, { sent: '{"type":"qr.created","data":{}}' })).toBe(400);
  expect(await deliver(url, secret, { ageSeconds: 400 })).toBe(400);
  expect(await deliver(url, secret, { ageSeconds: -400 })).toBe(400);
  expect(await deliver(url, secret, { signature: () => '' })).toBe(400);
  expect(await deliver(url, secret, { signature: () => 'v1,schön' })).toBe(400);
  expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(400);
  const id = 'evt_1';
  const signed = createHmac('sha256', Buffer.from(secret.slice(6), 'base64'))
    .update(`${id}.NaN.{}`)
    .digest('base64');
  const headers = { 'webhook-id': id, 'webhook-timestamp': 'NaN', 'webhook-signature': `v1,${signed}` };
  expect((await fetch(url, { method: 'POST', headers, body: '{}' })).status).toBe(400);
}

const SDK = resolve('sdk/typescript/src/index.ts');
if (!existsSync(SDK) && process.env.CI === 'true') throw new Error('Tests of the reference need the TypeScript SDK.');

describe('the operations', () => {
  /** An account with a code and a batch, and each operation's calls for them; the code is deleted last. */
  async function calls() {
    const account = await api.account();
    const { id } = await account.create({ folder: 'Berlin' });
    const { body } = await account.call<{ data: { id: string } }>('POST', '/batches', {
      json: { rows: [{ target_url: 'https://example.com' }, { target_url: 'nonsense' }] },
    });
    const operations = operationsOf(api.document).sort((one) => (one.method === 'DELETE' ? 1 : -1));
    return {
      account,
      operations: operations.map((member) => {
        const [curl, sdk] = callsOf(member, api.signpost.url).map(({ code }) =>
          code.replaceAll(SHOWN.code, id).replaceAll(SHOWN.batch, body.data.id),
        );
        return { id: member.operation.operationId, curl: curl ?? '', sdk: sdk ?? '' };
      }),
    };
  }

  test('have curl calls that succeed', async () => {
    const { account, operations } = await calls();
    expect(operations.at(-1)?.id).toBe('deleteCode');
    for (const { id, curl } of operations) {
      const printed = await shell(`${curl} --fail-with-body`, account);
      if (id === 'getCodeImage') expect(await readFile(join(folder, 'code.svg'), 'utf8')).toMatch(/^<svg/);
      else expect(printed).toContain(id === 'getOpenApi' ? '"openapi":"3.1.0"' : '"success":true');
    }
  }, 120_000);

  test.skipIf(!existsSync(SDK))(
    'have calls of the TypeScript SDK that succeed',
    async () => {
      const { account, operations } = await calls();
      const scopes = operations.map(({ id, sdk }) => `{ // ${id}\n${sdk}\n}\nconsole.log('${id}');`);
      const program = `import { Signpost } from '${SDK}';
      const signpost = new Signpost({ apiKey: process.env.KEY, baseUrl: process.env.BASE_URL });
      ${scopes.join('\n')}`;
      const file = join(folder, 'sdk.mts');
      await writeFile(file, program);
      const printed = await run(process.execPath, [file], { KEY: account.apiKey, BASE_URL: api.signpost.url });
      for (const { id, sdk } of operations) {
        expect(sdk).not.toBe('');
        expect(printed.split('\n')).toContain(id);
      }
      const first = await written('ts', 'signpost-sdk');
      await writeFile(first, (await readFile(first, 'utf8')).replace('signpost-sdk', SDK));
      expect(await run(process.execPath, [first], { KEY: account.apiKey })).toMatch(/^http.*\/r\/\w{7}\n$/);
    },
    120_000,
  );
});
