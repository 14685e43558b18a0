import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { CodeJson } from '../common/contract/code-json.ts';
import { type SharedSignpost, sharedSignpost } from '../test/harness/processes.ts';
import { commandLine } from './cli.fixture.ts';

const MENU = 'https://example.com/menu';
const LUNCH = 'https://example.com/lunch';
const EVENTUALLY = { interval: 50 };

interface VersionJson {
  readonly version: number;
  readonly target_url: string;
  readonly policy: object | null;
  readonly author: string;
  readonly note: string;
  readonly created_at: string;
}

let signpost: SharedSignpost;
let folder: string;
let account: string;
let code: CodeJson;
beforeAll(async () => {
  signpost = await sharedSignpost();
  folder = await mkdtemp(join(tmpdir(), 'signpost-target-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));
beforeEach(async () => {
  ({ accountId: account } = await signpost.createAccount());
  code = await cli.json('code', 'create', '--account', account, '--target-url', MENU);
});

const cli = commandLine(() => signpost);
const ofCode = (args: readonly string[]) => ['target', ...args, '--account', account, '--id', code.id];
const run = (...args: string[]) => cli.run(ofCode(args));
const json = <Value>(...args: string[]) => cli.json<Value>(...ofCode(args));

async function file(content: unknown): Promise<string> {
  const path = join(folder, 'policy.json');
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

const scan = async () => {
  const { headers, status } = await fetch(code.scan_url, { redirect: 'manual' });
  return headers.get('location') ?? status;
};

const GERMAN = {
  rules: [
    {
      name: 'German',
      when: { languages: ['de'], from: '2027-01-01T00:00:00.000Z' },
      then: { target_url: 'https://example.com/de' },
    },
    { when: { countries: ['FR'] }, then: { page: 'paused' } },
  ],
  parameters: { utm_source: 'print' },
};

test('set changes target URL, policy or both, and show prints what is set', async () => {
  expect(await json('set', '--target-url', LUNCH)).toEqual({ version: 2, target_url: LUNCH, policy: null });
  const changed = { version: 3, target_url: MENU, policy: GERMAN };
  const args = ['set', '--target-url', MENU, '--policy', await file(GERMAN), '--note', 'For guests'];
  expect(await json(...args)).toEqual(changed);
  // What is equal is no new version.
  expect(await json(...args)).toEqual(changed);
  expect(await json('show')).toEqual({
    ...changed,
    author: expect.stringMatching(/at the command line$/),
    note: 'For guests',
    created_at: expect.stringMatching(/Z$/),
  });
  await expect.poll(scan, EVENTUALLY).toBe(`${MENU}?utm_source=print`);
  expect(await json('set', '--no-policy')).toEqual({ version: 4, target_url: MENU, policy: null });
  await expect.poll(scan, EVENTUALLY).toBe(MENU);
});

test('preview says which rule decides, also of a target that is not set', async () => {
  await json('set', '--policy', await file(GERMAN));
  const visitor = ['--language', 'de-AT', '--device', 'mobile', '--operating-system', 'ios'];
  expect(await json('preview', '--at', '2027-01-01T00:00:00Z', ...visitor)).toEqual({
    target_url: 'https://example.com/de?utm_source=print',
    rule: 1,
    variant: null,
  });
  const otherwise = { target_url: `${MENU}?utm_source=print`, rule: null, variant: null };
  expect(await json('preview', '--at', '2026-12-31T23:59:59Z', ...visitor)).toEqual(otherwise);
  expect(await json('preview', '--country', 'FR')).toEqual({
    target_url: null,
    page: 'paused',
    rule: 2,
    variant: null,
  });
  const elsewhere = await file({ rules: [{ when: { countries: ['unknown'] }, then: { page: 'paused' } }] });
  expect(await json('preview', '--policy', elsewhere)).toMatchObject({ target_url: null, page: 'paused', rule: 1 });
  const variants = ['a', 'b'].map((label) => ({ label, weight: 1, target_url: `https://example.com/${label}` }));
  const path = await file({ rules: [{ then: { split: variants } }], pass_query: true });
  const seen = new Set<string>();
  for (let visitor = 1; seen.size < 2; visitor++) {
    const unsaved = ['--policy', path, '--visitor', `${visitor}`, '--query', 'table=4'];
    const { variant, ...rest } = await json<{ variant: string }>('preview', ...unsaved);
    expect(rest).toEqual({ target_url: `https://example.com/${variant}?table=4`, rule: 1 });
    seen.add(variant);
  }
  expect(await json('preview', '--no-policy', '--target-url', LUNCH)).toEqual({
    target_url: LUNCH,
    rule: null,
    variant: null,
  });
  expect(await json('show')).toMatchObject({ version: 2, policy: GERMAN });
});

test('history, at and rollback', async () => {
  const first = await json<VersionJson>('show');
  expect(first).toMatchObject({ version: 1, target_url: MENU, policy: null, author: '', note: '' });
  await json('set', '--policy', await file(GERMAN));
  const second = await json<VersionJson>('show');
  await json('set', '--target-url', LUNCH, '--expected-version', '2');
  const conflict = await run('set', '--target-url', MENU, '--expected-version', '2');
  expect(conflict).toEqual({
    code: 1,
    stdout: '',
    stderr: 'The target is now at version 3, not at version 2: read it and try again.\n',
  });
  expect(await json('rollback', '--to', '1', '--note', 'Too early')).toEqual({
    version: 4,
    target_url: MENU,
    policy: null,
  });
  const versions = await json<VersionJson[]>('history');
  expect(versions.map(({ version, note }) => [version, note])).toEqual([
    [4, 'Too early'],
    [3, ''],
    [2, ''],
    [1, ''],
  ]);
  expect(versions.slice(2)).toEqual([second, first]);
  expect(await json('history', '--limit', '2')).toEqual(versions.slice(0, 2));
  expect(await json('at', '--at', second.created_at)).toEqual(second);
  expect(await run('at', '--at', '2020-01-01')).toEqual({
    code: 1,
    stdout: '',
    stderr: '--at: the code did not exist at this time.\n',
  });
  expect((await run('rollback', '--to', '9')).stderr).toBe('--to: the target of this code has no version 9.\n');
});

test('schedule adds a rule before all others', async () => {
  await json('set', '--policy', await file(GERMAN));
  const weekly = ['--time-zone', 'Europe/Berlin', '--days', 'mon,tue', '--from-time', '11:00', '--until-time', '14:30'];
  const lunch = {
    name: 'lunch',
    when: { weekly: { time_zone: 'Europe/Berlin', days: ['mon', 'tue'], from: '11:00', until: '14:30' } },
    then: { target_url: LUNCH },
  };
  expect(await json('schedule', '--name', 'lunch', '--target-url', LUNCH, ...weekly)).toEqual({
    version: 3,
    target_url: MENU,
    policy: { ...GERMAN, rules: [lunch, ...GERMAN.rules] },
  });
  const preview = (at: string) => json<{ rule: number }>('preview', '--at', at);
  expect(await preview('2027-01-04T10:00:00Z')).toMatchObject({ rule: 1, target_url: `${LUNCH}?utm_source=print` });
  const opening = ['--from', '2027-01-04T00:00:00Z', '--until', '2027-01-05T00:00:00Z'];
  const { policy } = await json<{ policy: { rules: object[] } }>('schedule', '--target-url', MENU, ...opening);
  expect(policy.rules[0]).toEqual({
    when: { from: '2027-01-04T00:00:00.000Z', until: '2027-01-05T00:00:00.000Z' },
    then: { target_url: MENU },
  });
  expect(await preview('2027-01-04T10:00:00Z')).toMatchObject({ rule: 1, target_url: `${MENU}?utm_source=print` });
});

test('split is the last rule, and replaces a former split', async () => {
  const [german] = GERMAN.rules;
  await json('set', '--policy', await file({ rules: [german] }));
  const a = { label: 'a', weight: 3, target_url: 'https://example.com/a?x=y' };
  const b = { label: 'b', weight: 1, target_url: 'https://example.com/b' };
  const c = { label: 'c', weight: 1, target_url: 'https://example.com/c' };
  const option = ({ label, weight, target_url }: typeof a) => `${label}=${weight}=${target_url}`;
  const split = (...variants: (typeof a)[]) =>
    json<{ policy: { rules: object[] } }>('split', '--variant', ...variants.map(option));
  expect((await split(a, b)).policy.rules).toEqual([german, { then: { split: [a, b] } }]);
  expect((await split(b, c)).policy.rules).toEqual([german, { then: { split: [b, c] } }]);
  await json('set', '--policy', await file({ rules: [{ then: { page: 'gone' } }] }));
  const { code: exit, stderr } = await run('split', '--variant', option(a), option(b));
  expect({ exit, stderr }).toEqual({
    exit: 1,
    stderr: 'Rule 1 has no conditions, so that rules after it would never decide.\n',
  });
});

test('people are shown tables', async () => {
  const path = await file({ ...GERMAN, pass_query: true });
  const set = await run('set', '--policy', path);
  expect(set.stdout).toMatch(/^version +2\ntarget_url +https:\/\/example\.com\/menu\n\nrule +name +when +target\n/);
  expect(set.stdout).toMatch(/^1 +German +from 2027-01-01T00:00:00.000Z; language de +https:\/\/example\.com\/de$/m);
  expect(set.stdout).toMatch(/^2 +– +country FR +the page “paused”$/m);
  expect(set.stdout).toMatch(/^– +– +otherwise +https:\/\/example\.com\/menu$/m);
  expect(set.stdout).toMatch(/\n\nAdds utm_source=print, the query of the scan\n$/);
  expect((await run('show')).stdout).toMatch(/^since +\d+ \w{3} \d{4}, \d\d:\d\d \S+ \(now\)$/m);
  const [head, latest] = (await run('history')).stdout.split('\n');
  expect(head).toMatch(/^version +since +author +note +target$/);
  expect(latest).toMatch(/^2 +now +.+ +– +\(2 rules\) https:\/\/example\.com\/menu$/);
  expect((await run('preview', '--language', 'de', '--at', '2027-01-01')).stdout).toMatch(/^rule +1 \(German\)$/m);
  const forged = await run('set', '--policy', await file({ parameters: { utm_source: 'print\nAdds nothing' } }));
  expect(forged.stdout).toMatch(/\n\nAdds utm_source=print Adds nothing\n$/);
});

test('an empty --policy, as of an unset variable in a script, is invalid usage and removes no policy', async () => {
  await json('set', '--policy', await file({ rules: [{ then: { page: 'gone' } }] }));
  for (const command of ['set', 'preview']) {
    const stderr = "error: option '--policy <file>' must not be empty\n(add --help for usage)\n";
    expect(await run(command, '--policy', '')).toEqual({ code: 2, stdout: '', stderr });
  }
  expect(await json('show')).toMatchObject({ version: 2, policy: { rules: [{ then: { page: 'gone' } }] } });
});

test.each([
  [['set'], 'Give at least one of --target-url, --policy and --no-policy.'],
  [['set', '--policy', '/nowhere/policy.json'], "--policy: /nowhere/policy.json can't be read (ENOENT)."],
  [['rollback'], '--to'],
  [['at', '--at', 'soon'], 'It must be a time'],
  [['preview', '--device', 'phone'], 'Allowed choices are mobile, tablet, desktop, bot, other.'],
  [['schedule', '--target-url', LUNCH], 'Say when, by --from, --until or both, or by times of a week.'],
  [['schedule', '--target-url', LUNCH, '--days', 'mon'], 'Give all of --time-zone, --days, --from-time and'],
  [['split', '--variant', 'a=https://example.com/'], 'It must be LABEL=WEIGHT=URL'],
])('invalid usage exits with 2 and a sentence: %j', async (args, sentence) => {
  const { code: exit, stdout, stderr } = await run(...args);
  expect({ exit, stdout }).toEqual({ exit: 2, stdout: '' });
  expect(stderr).toContain(sentence);
});

test.each([
  ['{"rules": [}', /^--policy: \S+policy\.json is not valid JSON: [^\n]+\.\n$/],
  [{ rules: [{ than: {} }] }, '--policy: rules[0].then: Invalid input: expected object, received undefined.\n'],
  [{ rule: [] }, '--policy: Unrecognized key: "rule".\n'],
])('a file that is no policy exits with 2, and its sentence names the place: %j', async (content, sentence) => {
  for (const command of ['set', 'preview']) {
    const { code: exit, stdout, stderr } = await run(command, '--policy', await file(content));
    expect({ exit, stdout }).toEqual({ exit: 2, stdout: '' });
    expect(stderr).toEqual(typeof sentence === 'string' ? sentence : expect.stringMatching(sentence));
  }
  expect(await json('show')).toMatchObject({ version: 1 });
});

test('values that the core rejects exit with 1, and the sentence names option and place', async () => {
  const rejected = async (...args: string[]) => {
    const { code: exit, stdout, stderr } = await run(...args);
    expect({ exit, stdout }).toEqual({ exit: 1, stdout: '' });
    return stderr;
  };
  const path = await file({ rules: [{ then: { target_url: 'menu' } }] });
  const sentence = '--policy: rules[0].then.target_url: must be an absolute http or https URL.\n';
  expect(await rejected('set', '--policy', path)).toBe(sentence);
  expect(await rejected('preview', '--policy', path)).toBe(sentence);
  const at = ['--days', 'mon', '--from-time', '11:00', '--until-time', '14:30', '--target-url', LUNCH];
  expect(await rejected('schedule', '--time-zone', 'Europe/Atlantis', ...at)).toBe(
    '--time-zone: Europe/Atlantis is not in the IANA time zone database.\n',
  );
  expect(await rejected('split', '--variant', `a=1=${LUNCH}`)).toContain('--variant: must contain at least 2');
  expect(await rejected('preview', '--country', 'de')).toBe(
    '--country: must be a country such as DE, in capitals, or unknown.\n',
  );
  const page = await cli.json<CodeJson>('code', 'create-landing', '--account', account, '--title', 'Menu');
  const { code: exit, stderr } = await cli.run(['target', 'show', '--account', account, '--id', page.id]);
  expect({ exit, stderr }).toEqual({ exit: 1, stderr: '--id: only dynamic codes have a target.\n' });
  const unknown = await cli.run(['target', 'show', '--account', account, '--id', 'qr_x']);
  expect(unknown).toEqual({ code: 1, stdout: '', stderr: '--id: there is no such code on this account.\n' });
});
