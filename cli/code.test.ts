import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
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
const run = (group: string, ...args: string[]) => cli.run([group, ...args, '--account', account]);
const json = <Value>(group: string, ...args: string[]) => cli.json<Value>(group, ...args, '--account', account);

async function rest<Data>(method: string, path: string, body?: object): Promise<Data> {
  const response = await fetch(`${signpost.url}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${apiKey}` },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  return ((await response.json()) as { data: Data }).data;
}

const create = (fields: object) =>
  rest<CodeJson>('POST', '/qr-codes', { target_url: 'https://example.com', ...fields });

describe('code', () => {
  test('colours that scanners may be unable to read are reported on standard error', async () => {
    const pale = ['--payload', 'x', '--foreground', '#999', '--background', '#aaa'];
    const { code, stdout, stderr } = await run('code', 'create-static', ...pale, '--json');
    expect([code, JSON.parse(stdout).type]).toEqual([0, 'static']);
    expect(stderr).toMatch(/^Note: --foreground: /);
  });

  test('create-static and create-landing print the code as REST has it', async () => {
    const wifi = ['--wifi-ssid', 'Gäste', '--wifi-password', 'pasta; e basta', '--wifi-security', 'wpa'];
    const made = await json<CodeJson>('code', 'create-static', ...wifi, '--name', 'Guests', '--foreground', '#036');
    expect(made).toMatchObject({ type: 'static', name: 'Guests', payload: 'WIFI:T:WPA;S:Gäste;P:pasta\\; e basta;;' });
    expect(made.design.foregroundColor).toBe('#036');
    expect(await rest('GET', `/qr-codes/${made.id}`)).toEqual(made);
    expect((await json<CodeJson>('code', 'create-static', '--payload', 'tel:+391234')).payload).toBe('tel:+391234');

    const links = ['--link', 'Order=https://example.com/?a=b', '--link', 'Find us=https://example.org'];
    const page = await json<CodeJson>('code', 'create-landing', '--title', 'Menu', '--text', 'Open\ntoday', ...links);
    expect(page).toMatchObject({ type: 'landing_page', name: null });
    expect(await rest('GET', `/qr-codes/${page.id}`)).toEqual(page);
    const shown = await (await fetch(page.scan_url)).text();
    for (const part of ['Menu', 'Open\ntoday', 'https://example.com/?a=b', 'Find us']) expect(shown).toContain(part);

    const changed = await json<CodeJson>('code', 'update-landing', '--id', page.id, '--text', 'Closed today');
    expect(changed).toEqual({ ...page, scan_count: changed.scan_count, version: 2, updated_at: changed.updated_at });
    const read = async () => (await fetch(page.scan_url)).text();
    await expect.poll(read).toContain('Closed today');
    expect(await read()).toContain('https://example.com/?a=b');
  });

  test('restore restores a deleted code, within the limit', async () => {
    const code = await create({ name: 'a' });
    await rest('DELETE', `/qr-codes/${code.id}`);
    const restored = await json<CodeJson>('code', 'restore', '--id', code.id);
    expect(restored).toEqual({ ...code, version: 3, updated_at: restored.updated_at });
    await rest('DELETE', `/qr-codes/${code.id}`);
    await json('account', 'update', '--qr-limit', '0');
    const { code: exit, stdout, stderr } = await run('code', 'restore', '--id', code.id, '--json');
    expect({ exit, stdout }).toEqual({ exit: 1, stdout: '' });
    expect(stderr).toBe('This account has 0 of its 0 QR codes; delete some or change the plan.\n');
  });

  test.each([
    [2, ['create-static'], 'say what the code carries, by either --payload or --wifi-ssid'],
    [2, ['create-static', '--payload', 'x', '--wifi-ssid', 'y'], 'either --payload or --wifi-ssid'],
    [2, ['create-static', '--payload', 'x', '--wifi-hidden'], '--wifi-hidden require --wifi-ssid'],
    [2, ['create-static', '--payload', 'x', '--wifi-password=secret00'], '--wifi-hidden require --wifi-ssid'],
    [2, ['create-static', '--payload', 'x', '--wifi-security=wpa'], '--wifi-hidden require --wifi-ssid'],
    [2, ['create-static', '--wifi-ssid', 'y', '--wifi-password', ''], "'--wifi-password <password>' must not be empty"],
    [2, ['create-landing', '--title', 'x', '--domain', ''], "'--domain <id>' must not be empty"],
    [
      1,
      ['create-static', '--wifi-ssid', 'y', '--wifi-password', 'short'],
      '--wifi-password: a WPA password has 8 to 63',
    ],
    [2, ['create-static', '--wifi-ssid', 'y', '--wifi-security', 'wpa9'], 'wpa, wep, none'],
    [2, ['create-landing'], '--title'],
    [2, ['create-landing', '--title', 'x', '--link', 'nowhere'], 'It must be LABEL=URL.'],
    [1, ['create-landing', '--title', 'x', '--link', 'a=ftp://b'], '--link: must be an absolute'],
    [1, ['create-landing', '--title', ' '], '--title: is required.'],
    [2, ['create-landing', '--title', 'x', '--page-background', 'red'], 'It must be #rgb or #rrggbb.'],
    [2, ['update-landing', '--id', 'qr_x'], 'Give at least one of --title'],
    [2, ['restore'], '--id'],
    [2, ['restore', '--id', 'x', '--force'], '--force'],
  ])('exit code %i: code %j', async (exit, args, sentence) => {
    const { code, stdout, stderr } = await run('code', ...args);
    expect({ code, stdout }).toEqual({ code: exit, stdout: '' });
    expect(stderr).toContain(sentence);
  });
});

describe.each(['folder', 'tag'])('%s', (word) => {
  interface Label {
    readonly id: string;
    readonly name: string;
    readonly code_count: number;
  }
  const labelled = (name: string) => create(word === 'folder' ? { folder: name } : { tags: [name] });

  test('list, rename, merge and delete print what REST lists', async () => {
    await labelled('Berlin');
    await labelled('東京');
    const [berlin, tokyo] = await json<Label[]>(word, 'list');
    if (!berlin || !tokyo) throw new Error('a label is missing');
    expect([berlin, tokyo]).toEqual(await rest('GET', `/${word}s`));
    const renamed = await json<Label>(word, 'rename', '--id', berlin.id, '--name', 'Hamburg');
    expect(renamed).toEqual({ id: berlin.id, name: 'Hamburg', code_count: 1 });
    const taken = await run(word, 'rename', '--id', berlin.id, '--name', '東京');
    expect(taken).toEqual({ code: 1, stdout: '', stderr: `Another ${word} has this name; merge the two instead.\n` });
    const merged = await json<Label>(word, 'merge', '--id', tokyo.id, '--into', berlin.id, '--yes');
    expect(merged).toEqual({ id: berlin.id, name: 'Hamburg', code_count: 2 });
    const people = await run(word, 'list');
    expect(people.stdout).toMatch(/^id +name +code_count\n\w+ +Hamburg +2\n$/);
    expect(await json(word, 'delete', '--id', berlin.id, '--yes')).toEqual({ id: berlin.id, deleted: true });
    expect(await json(word, 'list')).toEqual([]);
  });
});
