import { beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { type Dns, startDns } from '../test/harness/dns.ts';
import { type Signpost, startSignpost } from '../test/harness/processes.ts';
import { commandLine } from './cli.fixture.ts';

let dns: Dns;
let signpost: Signpost;
let account: string;

beforeAll(async () => {
  dns = await startDns();
  const env = { ROLES: 'rpc', PUBLIC_URL: 'https://sign.example', DNS_RESOLVERS: dns.address };
  signpost = await startSignpost({ gateways: 0, env });
});
beforeEach(async () => {
  ({ accountId: account } = await signpost.createAccount());
});

const cli = commandLine(() => signpost);
const run = (...args: string[]) => cli.run(['domain', ...args, '--account', account]);

interface DisplayRecord {
  readonly id: string;
  readonly hostname: string;
  readonly state: string;
  readonly txt_name: string;
  readonly txt_value: string;
  readonly problem: string | null;
}

const json = <Value = DisplayRecord>(...args: string[]) => cli.json<Value>('domain', ...args, '--account', account);
const unfulfilled = (...args: string[]) => cli.unfulfilled('domain', ...args, '--account', account);

test('a domain is added, verified by id or hostname, listed and removed', async () => {
  const added = await json('add', '--hostname', 'Bäcker.example');
  expect(added).toEqual({
    id: expect.stringMatching(/^domain_/),
    hostname: 'xn--bcker-gra.example',
    state: 'pending',
    txt_name: '_signpost.xn--bcker-gra.example',
    txt_value: expect.stringMatching(/^signpost-verify=/),
    problem: null,
  });
  const problem = expect.stringContaining('There is no TXT record');
  expect(await unfulfilled('verify', '--id', added.id)).toEqual({ ...added, problem });
  expect(await json('list')).toEqual([{ ...added, problem }]);
  dns.set(added.txt_name, 'TXT', added.txt_value);
  expect(await json('verify', '--id', added.id)).toEqual({
    ...added,
    state: 'verified',
    problem: expect.stringContaining('CNAME'),
  });
  dns.set(added.hostname, 'CNAME', 'sign.example');
  const live = { ...added, state: 'live' };
  expect(await json('verify', '--hostname', 'BÄCKER.example.')).toEqual(live);
  expect(await json('list')).toEqual([live]);
  dns.set(added.hostname, 'CNAME', 'elsewhere.example');
  expect(await unfulfilled('verify', '--hostname', added.hostname)).toMatchObject({
    state: 'failing',
    problem: expect.stringContaining('CNAME for sign.example'),
  });
  expect(await json('remove', '--hostname', 'bäcker.example', '--yes')).toMatchObject({ id: added.id });
  expect(await json('list')).toEqual([]);
});

test('the output for people says what is missing', async () => {
  const { stdout } = await run('add', '--hostname', 'menu.example');
  expect(stdout).toMatch(/txt_name +_signpost\.menu\.example/);
  expect((await run('verify', '--hostname', 'menu.example')).stdout).toContain('There is no TXT record');
  expect((await run('list')).stdout).toContain('There is no TXT record');
});

test('invalid usage exits with 2, a rejected call with 1 and a sentence', async () => {
  expect(await run('add')).toMatchObject({ code: 2, stdout: '' });
  const refused = async (...args: string[]) => {
    const { code, stdout, stderr } = await run(...args);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    return stderr;
  };
  expect(await refused('add', '--hostname', 'https://menu.example')).toMatch(/^--hostname: must be only a hostname/);
  const unnamed = { code: 2, stdout: '', stderr: 'Name the domain by --id or --hostname.\n' };
  expect(await run('verify')).toEqual(unnamed);
  expect(await refused('remove', '--hostname', 'menu.example', '--yes')).toMatch(
    /^--hostname: menu.example is not a domain of this account/,
  );
  expect(await run('remove')).toEqual(unnamed);
  expect(await refused('verify', '--id', 'domain_x')).toMatch(/^--id: domain_x is not a domain of this account/);
});

test('the domain that a removal asks about is the one that it removes', async () => {
  const [kept, other] = [await json('add', '--hostname', 'kept.example'), await json('add', '--hostname', 'b.example')];
  const both = await run('remove', '--id', kept.id, '--hostname', other.hostname, '--yes');
  expect(both).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringMatching(/--hostname.* cannot be used with.*--id/),
  });
  expect(await run('remove', '--id', kept.id)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^kept\.example will be removed; .* Add --yes/),
  });
  expect(await json('list')).toHaveLength(2);
});

test('unavailable resolvers are distinguished from an unavailable core', async () => {
  await json('add', '--hostname', 'menu.example');
  dns.mode = 'broken';
  onTestFinished(() => {
    dns.mode = 'answering';
  });
  const { code, stderr } = await run('verify', '--hostname', 'menu.example');
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: 'The DNS resolvers did not answer for menu.example; try again.\n',
  });
});
