import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import type { CodeJson } from '../common/contract/code-json.ts';
import { type SharedSignpost, sharedSignpost } from '../test/harness/processes.ts';
import { commandLine } from './cli.fixture.ts';

let signpost: SharedSignpost;
let account: string;
let apiKey: string;
beforeAll(async () => {
  signpost = await sharedSignpost();
});
beforeEach(async () => {
  ({ accountId: account, apiKey } = await signpost.createAccount());
});

const cli = commandLine(() => signpost);
const run = (...args: string[]) => cli.run(['code', ...args, '--account', account]);
const json = <Value = CodeJson>(...args: string[]) => cli.json<Value>('code', ...args, '--account', account);
const create = (...args: string[]) => json('create', '--target-url', 'https://example.com/menu', ...args);

async function rest(path: string): Promise<unknown> {
  const headers = { authorization: `Bearer ${apiKey}` };
  return ((await (await fetch(`${signpost.url}/api/v1${path}`, { headers })).json()) as { data: unknown }).data;
}

const scan = async ({ scan_url }: CodeJson) => {
  const { status, headers } = await fetch(scan_url, { redirect: 'manual' });
  return headers.get('location') ?? status;
};

test('create, show and list print codes as REST has them', async () => {
  const made = await create('--name', 'Table 4', '--folder', 'Terrace', '--tag', 'summer', 'wine', '--tag', 'beer');
  expect(made).toMatchObject({ type: 'dynamic', name: 'Table 4', tags: ['beer', 'summer', 'wine'], version: 1 });
  expect(made.folder?.name).toBe('Terrace');
  expect(await rest(`/qr-codes/${made.id}`)).toEqual(made);
  expect(await json('show', '--id', made.id)).toEqual(made);
  await expect.poll(() => scan(made)).toBe('https://example.com/menu');
  const other = await create('--campaign-type', 'poster');
  expect(other.campaign_type).toBe('poster');
  const ids = async (...args: string[]) => (await json<CodeJson[]>('list', ...args)).map(({ id }) => id);
  const listed = await json<CodeJson[]>('list');
  expect(listed.map(({ id }) => id)).toEqual([other.id, made.id]);
  expect(listed[0]).toEqual(other);
  expect(await ids('--limit', '1')).toEqual([other.id]);
  expect(await ids('--offset', '1')).toEqual([made.id]);
  expect(await ids('--folder', 'terrace')).toEqual([made.id]);
  expect(await ids('--folder', 'none')).toEqual([other.id]);
  expect(await ids('--tag', 'wine', 'unknown')).toEqual([made.id]);
});

test('update changes only what is given, and removes what it is told to', async () => {
  const made = await create('--name', 'Table 4', '--folder', 'Terrace', '--tag', 'summer');
  const moved = await json('update', '--id', made.id, '--target-url', 'https://example.com/winter');
  expect(moved).toMatchObject({
    ...made,
    target_url: 'https://example.com/winter',
    version: 2,
    scan_count: 0,
    updated_at: moved.updated_at,
  });
  await expect.poll(() => scan(made)).toBe('https://example.com/winter');
  const labelled = await json('update', '--id', made.id, '--name', 'Bar', '--folder', 'Inside', '--tag', 'a', 'b');
  expect(labelled).toMatchObject({ name: 'Bar', folder: { name: 'Inside' }, tags: ['a', 'b'] });
  const bare = await json('update', '--id', made.id, '--no-name', '--no-folder', '--no-tag');
  expect(bare).toMatchObject({ name: null, folder: null, tags: [], target_url: 'https://example.com/winter' });
  for (const both of [
    ['--name', 'Bar', '--no-name'],
    ['--no-name', '--name', 'Bar'],
  ])
    expect(await run('update', '--id', made.id, ...both)).toMatchObject({
      code: 2,
      stderr: "error: option '--name <name>' cannot be used with option '--no-name'\n(add --help for usage)\n",
    });
});

test('an empty value, as of an unset variable in a script, is invalid usage and removes nothing', async () => {
  const made = await create('--name', 'Table 4', '--folder', 'Terrace', '--tag', 'summer');
  for (const [option, flags] of [
    ['--name', '--name <name>'],
    ['--folder', '--folder <folder>'],
    ['--tag', '--tag <tags...>'],
  ] as const) {
    const empty = {
      code: 2,
      stdout: '',
      stderr: `error: option '${flags}' must not be empty\n(add --help for usage)\n`,
    };
    expect(await run('update', '--id', made.id, option, '')).toEqual(empty);
    expect(await run('create', '--target-url', 'https://example.com', option, '')).toEqual(empty);
  }
  // Without quotation marks.
  expect(await run('update', '--id', made.id, '--name', '--no-folder')).toEqual({
    code: 2,
    stdout: '',
    stderr:
      "error: option '--name <name>' needs a value; if --no-folder is it, write --name=--no-folder\n(add --help for usage)\n",
  });
  for (const next of ['--help', '-h', '--yes', '--folder=Menus'])
    expect(await run('update', '--id', made.id, '--tag', next)).toMatchObject({ code: 2, stdout: '' });
  expect(await json('show', '--id', made.id)).toMatchObject({ name: 'Table 4', folder: made.folder, tags: ['summer'] });
  expect((await json<CodeJson[]>('list')).map(({ id }) => id)).toEqual([made.id]);
});

test.runIf(process.platform === 'linux')(
  'a name is asked about on one line, without its control characters',
  async () => {
    const made = await create('--name', 'Table\u001b]0;4\u0007\nNothing was deleted.');
    const command = `'${process.execPath}' cli/main.ts code delete --account ${account} --id ${made.id}`;
    const env = { ...process.env, CORE_PORT: String(signpost.corePort), SERVICE_TOKEN: signpost.serviceToken };
    // A terminal, by util-linux.
    const terminal = spawn('script', ['-qec', command, '/dev/null'], { env });
    let output = '';
    terminal.stdout.on('data', (text) => {
      output += text;
      if (output.includes('[y/N]')) terminal.stdin.end('n\r');
    });
    await once(terminal, 'close');
    expect(output).toContain(`Table ]0;4 Nothing was deleted. (${made.id}) will be deleted`);
    // Nobody would see the question.
    const unseen = spawn('script', ['-qec', `${command} 2>/dev/null`, '/dev/null'], { env });
    expect(await once(unseen, 'close')).toEqual([2, null]);
    const { stderr } = await run('delete', '--id', made.id);
    expect(stderr).toContain(`Table ]0;4 Nothing was deleted. (${made.id}) will be deleted`);
    const { stdout } = await run('delete', '--id', made.id, '--yes');
    expect(stdout).toBe(`Table ]0;4 Nothing was deleted. (${made.id}) was deleted; code restore restores it.\n`);
  },
);

test('pause, resume, delete and restore', async () => {
  const made = await create('--name', 'Table 4');
  expect(await run('delete', '--id', 'qr_1', '--id', made.id, '--yes')).toEqual({
    code: 2,
    stdout: '',
    stderr: "error: option '--id <id>' cannot be given twice\n(add --help for usage)\n",
  });
  expect(await json('pause', '--id', made.id)).toMatchObject({ id: made.id, paused: true });
  await expect.poll(() => scan(made)).toBe(200);
  expect(await json('resume', '--id', made.id)).toMatchObject({ id: made.id, paused: false });
  const unconfirmed = await run('delete', '--id', made.id);
  expect(unconfirmed).toMatchObject({ code: 2, stdout: '' });
  expect(unconfirmed.stderr).toContain(`Table 4 (${made.id}) will be deleted`);
  expect(await json('show', '--id', made.id)).toMatchObject({ id: made.id });
  expect(await json('delete', '--id', made.id, '--yes')).toMatchObject({ id: made.id, deleted: true });
  await expect.poll(() => scan(made)).toBe(410);
  expect(await run('show', '--id', made.id)).toMatchObject({ code: 1, stdout: '' });
  expect(await json('restore', '--id', made.id)).toMatchObject({ id: made.id, paused: false });
});

test('a code whose label is invalid is created, with a note that names the option and exit code 3', async () => {
  const { code, stdout, stderr } = await run(
    'create',
    '--target-url',
    'https://example.com',
    '--folder',
    'None',
    '--json',
  );
  expect(code).toBe(3);
  expect(JSON.parse(stdout)).toMatchObject({ type: 'dynamic', folder: null });
  expect(stderr).toBe('Note: --folder: "none" is reserved for unfiled codes.\n');
});

test.each([
  [1, ['create', '--target-url', 'nowhere'], '--target-url: must be an absolute http or https URL.'],
  [1, ['create', '--target-url', 'https://example.com', '--name', 'x'.repeat(201)], '--name: must be at most 200'],
  [1, ['create', '--target-url', 'https://example.com', '--domain', 'domain_x'], '--domain: must be a domain of'],
  [1, ['create', '--target-url', 'https://example.com', '--tag', ...'abcdefghijklmnopqrstu'], '--tag: a code can have'],
  [1, ['update', '--id', 'qr_x', '--name', 'x'], '--id: there is no such code on this account.'],
  [1, ['list', '--folder', 'Nowhere'], '--folder: no folder of this account has this id or name.'],
  [1, ['analytics', '--id', 'qr_x'], '--id: there is no such code on this account.'],
  [1, ['image', '--id', 'qr_x'], '--id: there is no such code on this account.'],
  [2, ['update', '--id', 'qr_x'], 'Give at least one of --target-url, --name, --folder and --tag.'],
  [2, ['analytics', '--id', 'qr_x', '--period', '0'], 'It must be from 1 to 365.'],
  [2, ['analytics', '--id', 'qr_x', '--period', '366'], 'It must be from 1 to 365.'],
  [2, ['create'], '--target-url'],
  [2, ['list', '--limit', 'x'], 'It must be a whole number.'],
  [2, ['list', '--limit', '0'], 'It must be at least 1.'],
  [2, ['show'], '--id'],
])('exit code %i: code %j', async (exit, args, sentence) => {
  const { code, stdout, stderr } = await run(...args);
  expect({ code, stdout }).toEqual({ code: exit, stdout: '' });
  expect(stderr).toContain(sentence);
});

test('the target of a code of another type cannot be changed', async () => {
  const page = await json('create-landing', '--title', 'Menu');
  const { code, stderr } = await run('update', '--id', page.id, '--target-url', 'https://example.com');
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: '--target-url: only dynamic codes have a target that can be changed.\n',
  });
});

test('the list fits into 80 columns, with human dates, and is complete where no width is given', async () => {
  const long = `https://example.com/${'menu/'.repeat(30)}`;
  await json('create', '--target-url', long, '--name', 'Ein sehr langer Name 東京 für einen Tisch');
  const paused = await create();
  await json('pause', '--id', paused.id);
  const args = ['code', 'list', '--account', account];
  const { stdout } = await cli.run(args, { COLUMNS: '80' });
  const lines = stdout.trimEnd().split('\n');
  expect(lines[0]).toMatch(/^id +name +scans +created +target$/);
  // The two wide characters are cut off.
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
  expect(lines[1]).toMatch(/^qr_\w+ +– +0 +now +\(paused\) https:\/\/e\S*…$/);
  expect(lines[2]).toMatch(/^qr_\w+ +Ein sehr la… +0 +now +https:\/\/\S*…$/);
  expect((await cli.run(args)).stdout).toContain(long);
  const part = await cli.run([...args, '--limit', '1']);
  expect(part.stderr).toBe('1 of 2 codes; --limit and --offset show others.\n');
});

test('show is complete and has human dates', async () => {
  const made = await create('--tag', 'summer', '--tag', 'wine');
  const { stdout } = await run('show', '--id', made.id);
  expect(stdout).toMatch(/^state +active$/m);
  expect(stdout).toMatch(/^tags +summer, wine$/m);
  expect(stdout).toMatch(/^created +\d+ \w{3} \d{4}, \d\d:\d\d \S+ \(now\)$/m);
});
