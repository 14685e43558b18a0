import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { CodeJson } from '../common/contract/code-json.ts';
import { failure } from '../common/contract/errors.ts';
import { TargetsService } from '../proto/gen/signpost/targets/v1/targets_pb.ts';
import { type Signpost, startSignpost } from '../test/harness/processes.ts';
import { commandLine } from './cli.fixture.ts';

const MENU = 'https://example.com/menu';
const TIME = expect.stringMatching(/Z$/);
const GONE = { rules: [{ then: { page: 'gone' } }] };

interface ChangeJson {
  readonly id: string;
}

let signpost: Signpost;
let folder: string;
let account: string;
let codes: CodeJson[];
beforeAll(async () => {
  signpost = await startSignpost({ gateways: 0 });
  folder = await mkdtemp(join(tmpdir(), 'signpost-changes-'));
  ({ accountId: account } = await signpost.createAccount());
  const create = () => cli.json<CodeJson>('code', 'create', '--account', account, '--target-url', MENU);
  codes = [await create(), await create(), await create()];
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const cli = commandLine(() => signpost);
const ofAccount = (args: readonly string[]) => ['target', ...args, '--account', account];
const run = (...args: string[]) => cli.run(ofAccount(args));
const json = <Value>(...args: string[]) => cli.json<Value>(...ofAccount(args));
const versionOf = async ({ id }: CodeJson) =>
  (await json<{ version: number; target_url: string; policy: unknown }>('show', '--id', id)).version;

async function csv(...lines: string[]): Promise<string> {
  const path = join(folder, 'rows.csv');
  await writeFile(path, `\ufeff${lines.join('\r\n')}\r\n`);
  return path;
}

const quoted = (value: unknown) => `"${JSON.stringify(value).replaceAll('"', '""')}"`;

test('a dry run reports what would happen, and the same file then changes it', async () => {
  const [first, second, third] = codes as [CodeJson, CodeJson, CodeJson];
  const file = await csv(
    'ID,short_code,target_url,policy',
    `${first.id},,https://example.com/a,`,
    `,${second.short_code},,${quoted(GONE)}`,
    '',
    `${third.id},,${MENU},`,
    ',unknown,https://example.com/b,',
    `${first.id},,not a URL,`,
  );
  const failed = [
    { row: 6, code: 'unknown', status: 'failed', code_id: null, version: null, reason: expect.stringMatching(/\.$/) },
    expect.objectContaining({ row: 7, code: first.id, status: 'failed', reason: expect.stringMatching(/target_url/) }),
  ];
  const counts = { total: 5, pending: 0, changed: 2, unchanged: 1, failed: 2 };
  const report = { id: expect.stringMatching(/^change_/), status: 'completed', ...counts, rows: failed };
  const times = { created_at: TIME, completed_at: TIME };
  const dry = ofAccount(['change', '--file', file, '--dry-run']);
  expect(await cli.unfulfilled(...dry)).toEqual({ ...report, ...times, dry_run: true, note: '' });
  expect(await Promise.all(codes.map(versionOf))).toEqual([1, 1, 1]);

  const note = 'Winter';
  const change = await cli.unfulfilled<ChangeJson>(...ofAccount(['change', '--file', file, '--note', note]));
  expect(change).toEqual({ ...report, ...times, dry_run: false, note });
  expect(await Promise.all(codes.map(versionOf))).toEqual([2, 2, 1]);
  expect(await json('show', '--id', second.id)).toMatchObject({ target_url: MENU, policy: GONE, note });

  expect(await json('changes')).toMatchObject([{ id: change.id, note }, { dry_run: true }]);
  expect(await json('changes', '--id', change.id, '--status', 'changed')).toMatchObject({
    rows: [
      { row: 2, code: first.id, code_id: first.id, version: 2, reason: null },
      { row: 3, code: second.short_code, code_id: second.id, version: 2, reason: null },
    ],
  });
  expect(await json('changes', '--id', change.id, '--limit', '1')).toMatchObject({ rows: [{ row: 2 }] });
});

test('a change whose status can’t be read is said to go on, with the reason', async () => {
  let isLost = true;
  const core = createServer(
    connectNodeAdapter({
      routes: ({ service }) =>
        service(TargetsService, {
          changeTargets: () => ({ change: { id: 'change_1' } }),
          // biome-ignore lint/correctness/useYield: it fails before it has anything to say.
          async *watchTargetChange() {
            if (!isLost) throw failure('NOT_FOUND', 'There is no such change.');
          },
        }),
    }),
  );
  await once(core.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void core.close());
  const { port } = core.address() as AddressInfo;
  const args = ofAccount(['change', '--file', await csv('id,target_url', 'qr_1,x')]);
  const change = () => cli.run(args, { CORE_PORT: String(port) });
  const goesOn = 'The change goes on: target changes --id change_1 shows it.\n';
  expect(await change()).toEqual({ code: 1, stdout: '', stderr: `The connection to the core was lost. ${goesOn}` });
  isLost = false;
  expect(await change()).toEqual({ code: 1, stdout: '', stderr: `There is no such change. ${goesOn}` });
});

test('only rows of a change have a status', async () => {
  const stderr = '--status: selects rows of a change; name the change by --id.\n';
  expect(await run('changes', '--status', 'failed')).toEqual({ code: 2, stdout: '', stderr });
});

test('semicolons separate columns too, and an empty policy removes the one that a code has', async () => {
  const [, second] = codes as [CodeJson, CodeJson];
  const file = await csv('short_code;policy', `${second.short_code};{}`);
  const { code, stdout, stderr } = await run('change', '--file', file);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/^changed +1$/m);
  expect(await json('show', '--id', second.id)).toMatchObject({ target_url: MENU, policy: null });
  expect((await run('changes')).stdout).toMatch(/^change_\S+ +completed +1 +0 +1 /m);
});

test('rows that can’t be sent as they are fail one by one, with their numbers in a spreadsheet', async () => {
  const [first, second] = codes as [CodeJson, CodeJson];
  const file = await csv(
    'id,short_code,target_url,policy',
    '',
    ',"two\r\nlines",https://example.com/a,',
    `${first.id},${first.short_code},https://example.com/a,`,
    ',,https://example.com/a,',
    `${first.id},,,`,
    '',
    '  ',
    `${first.id},,https://example.com/a,{`,
    `${first.id},,,${quoted({ rules: [{ when: {}, then: {} }] })}`,
    `${second.id},,https://example.com/rows,`,
    `,${second.short_code},https://example.com/rows,`,
  );
  const oneCode = 'Give the code in exactly one of the columns id, short_code and external_ref.';
  const before = await versionOf(first);
  const { rows, ...counts } = await cli.unfulfilled<{ rows: { row: number; reason: string }[]; id: string }>(
    ...ofAccount(['change', '--file', file]),
  );
  expect(rows.map(({ row, reason }) => [row, reason])).toEqual([
    [3, 'short_code: there is no such code on this account.'],
    [4, oneCode],
    [5, oneCode],
    [6, 'Give a target_url, a policy or both.'],
    [9, expect.stringMatching(/^policy: is not valid JSON: .*\.$/)],
    [10, expect.stringMatching(/^policy: rules\[0\].*\.$/)],
    [12, 'An earlier row already changes this code.'],
  ]);
  expect(counts).toMatchObject({ total: 8, changed: 1, failed: 7 });
  expect(await versionOf(first)).toBe(before);
  expect(await json('changes', '--id', counts.id, '--status', 'failed')).toMatchObject({ failed: 7 });
});

test.each([
  [['id'], /must have a column id, short_code or external_ref, and a column target_url or policy/],
  [['id,url', 'qr_1,x'], /the column “url” is unknown\. The columns are id, short_code/],
  [['id,target_url,Target_URL', 'qr_1,x,y'], /the column “target_url” occurs twice\./],
  [['id,target_url'], /rows\.csv has no rows below its header/],
  [['id,target_url', 'qr_1,x,y'], /Invalid Record Length.* line 2/],
  [['id,target_url', ...Array<string>(25_001).fill('qr_1,x')], /more than 25,000 rows/],
  [['id,target_url', ...Array<string>(25_000).fill(`qr_1,${MENU.padEnd(340, 'x')}`)], /more than 8 MiB of rows/],
])('a bad file is refused before anything is sent: %#', async (lines, message) => {
  const { code, stdout, stderr } = await run('change', '--file', await csv(...lines));
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(/^--file: /);
  expect(stderr).toMatch(message);
});

test('a file that is not in UTF-8 is refused, and a byte order mark is no part of a policy', async () => {
  const [first] = codes as [CodeJson];
  const rows = join(folder, 'latin-1.csv');
  await writeFile(rows, `id,target_url\n${first.id},https://example.com/Menü\n`, 'latin1');
  expect(await run('change', '--file', rows)).toEqual({
    code: 2,
    stdout: '',
    stderr: `--file: ${rows} is not in UTF-8; save it in that encoding.\n`,
  });
  const policy = join(folder, 'policy.json');
  await writeFile(policy, `\ufeff${JSON.stringify(GONE)}`);
  expect(await json('preview', '--id', first.id, '--policy', policy)).toMatchObject({ page: 'gone' });
});

test('a file that can’t be read is named', async () => {
  const path = join(folder, 'none.csv');
  expect(await run('change', '--file', path)).toEqual({
    code: 2,
    stdout: '',
    stderr: `--file: ${path} can't be read (ENOENT).\n`,
  });
});

test('Ctrl-C while a change is watched says that it goes on', async () => {
  const { promise: watched, resolve: watch } = Promise.withResolvers<void>();
  const core = createServer(
    connectNodeAdapter({
      routes: ({ service }) =>
        service(TargetsService, {
          changeTargets: () => ({ change: { id: 'change_1' } }),
          async *watchTargetChange(_, { signal }) {
            yield { change: { id: 'change_1', counts: { total: 2, pending: 1 } } };
            watch();
            await once(signal, 'abort');
          },
        }),
    }),
  );
  await once(core.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void core.close());
  const { port } = core.address() as AddressInfo;
  const args = ofAccount(['change', '--file', await csv('id,target_url', 'qr_1,x')]);
  const env = { ...process.env, CORE_PORT: String(port), SERVICE_TOKEN: 'x' };
  const change = spawn(process.execPath, ['cli/main.ts', ...args], { env });
  let stderr = '';
  change.stderr.on('data', (text) => (stderr += text));
  await watched;
  change.kill('SIGINT');
  expect(await once(change, 'close')).toEqual([130, null]);
  expect(stderr).toBe('The change goes on: target changes --id change_1 shows it.\n');
});

test.runIf(process.platform === 'linux')(
  'until the core has accepted a change, a terminal shows how long that takes, and Ctrl-C says that it may go on',
  async () => {
    const core = createServer(
      connectNodeAdapter({
        routes: ({ service }) =>
          service(TargetsService, {
            async changeTargets(_, { signal }) {
              await once(signal, 'abort');
              return {};
            },
          }),
      }),
    );
    await once(core.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void core.close());
    const { port } = core.address() as AddressInfo;
    const args = ofAccount(['change', '--file', await csv('id,target_url', 'qr_1,x')]);
    const env = { ...process.env, CORE_PORT: String(port), SERVICE_TOKEN: 'x', TERM: 'xterm-256color' };
    // A terminal, by util-linux.
    const terminal = spawn('script', ['-qec', `'${process.execPath}' cli/main.ts ${args.join(' ')}`, '/dev/null'], {
      env,
    });
    let output = '';
    terminal.stdout.on('data', (text) => {
      if (!output.includes('Changing targets') && `${output}${text}`.includes('Changing targets'))
        terminal.stdin.write('\x03');
      output += text;
    });
    expect(await once(terminal, 'close')).toEqual([130, null]);
    expect(output).toMatch(/Changing targets … \d s/);
    expect(output).toContain('\nThe change may go on: target changes lists it then.\r\n');
  },
);
