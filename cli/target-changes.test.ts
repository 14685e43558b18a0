import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CodeJson } from '../common/contract/code-json.ts';
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
  signpost = await startSignpost();
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
    { row: 5, code: 'unknown', status: 'failed', code_id: null, version: null, reason: expect.stringMatching(/\.$/) },
    expect.objectContaining({ row: 6, code: first.id, status: 'failed', reason: expect.stringMatching(/target_url/) }),
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

test('semicolons separate columns too, and an empty policy removes the one that a code has', async () => {
  const [, second] = codes as [CodeJson, CodeJson];
  const file = await csv('short_code;policy', `${second.short_code};{}`);
  const { code, stdout, stderr } = await run('change', '--file', file);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/^changed +1$/m);
  expect(await json('show', '--id', second.id)).toMatchObject({ target_url: MENU, policy: null });
  expect((await run('changes')).stdout).toMatch(/^change_\S+ +completed +1 +0 +1 /m);
});

test.each([
  [['id'], /must have a column id, short_code or external_ref, and a column target_url or policy/],
  [['id,url', 'qr_1,x'], /the column “url” is unknown\. The columns are id, short_code/],
  [['id,target_url'], /rows\.csv has no rows below its header/],
  [['id,short_code,target_url', 'qr_1,abc,x'], /row 2: give the code in exactly one of the columns/],
  [['id,target_url', 'qr_1,x', ',x'], /row 3: give the code/],
  [['id,target_url', 'qr_1,'], /row 2: give a target_url, a policy or both/],
  [['id,policy', 'qr_1,{'], /row 2: the policy is not valid JSON: /],
  [['id,policy', `qr_1,${quoted({ rules: [{ when: {}, then: {} }] })}`], /row 2: policy: rules\[0\]/],
  [['id,target_url', 'qr_1,x,y'], /Invalid Record Length.* line 2/],
  [['id,target_url', ...Array<string>(25_001).fill('qr_1,x')], /more than 25,000 rows/],
])('a bad file is refused before anything is sent: %#', async (lines, message) => {
  const { code, stdout, stderr } = await run('change', '--file', await csv(...lines));
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(/^--file: /);
  expect(stderr).toMatch(message);
});

test('a file that can’t be read is named', async () => {
  const path = join(folder, 'none.csv');
  expect(await run('change', '--file', path)).toEqual({
    code: 2,
    stdout: '',
    stderr: `--file: ${path} can't be read (ENOENT).\n`,
  });
});
