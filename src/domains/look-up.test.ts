import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { startDns } from '../../test/harness/dns.ts';
import { lookUp, ResolversUnavailable } from './look-up.ts';

const dns = await startDns();
const platform = {
  host: 'sign.example',
  addresses: ['192.0.2.10', '2001:DB8:0::10'],
  resolvers: [dns.address],
};

let hostnames = 0;
let hostname: string;
beforeEach(() => {
  dns.mode = 'answering';
  dns.onAnswer = () => undefined;
  hostname = `menu${hostnames++}.example`;
});

const check = (state: 'pending' | 'verified' | 'live', signal = new AbortController().signal) =>
  lookUp({ hostname, token: 'secret', state }, platform, signal);

test('of a pending domain without its record nothing else is queried', async () => {
  const problem = `There is no TXT record at _signpost.${hostname} yet.`;
  expect(await check('pending')).toEqual({ from: 'pending', proven: false, resolves: undefined, problem });
});

test.each([
  ['another text', 'signpost-verify=other'],
  ['another case', 'signpost-verify=SECRET'],
  ['more than the text', 'signpost-verify=secret2'],
])('a record with %s proves nothing', async (_, text) => {
  dns.set(`_signpost.${hostname}`, 'TXT', text);
  expect(await check('pending')).toMatchObject({ proven: false, problem: expect.stringContaining('does not contain') });
});

test('the record proves ownership among others and when split into strings', async () => {
  dns.set(`_signpost.${hostname}`, 'TXT', 'v=spf1 -all', ['signpost-', 'verify=secret']);
  expect(await check('pending')).toMatchObject({ proven: true, resolves: false });
});

test('answers are not cached: a deleted record no longer proves ownership', async () => {
  dns.set(`_signpost.${hostname}`, 'TXT', 'signpost-verify=secret');
  expect(await check('pending')).toMatchObject({ proven: true });
  dns.set(`_signpost.${hostname}`, 'TXT');
  expect(await check('pending')).toMatchObject({ proven: false });
});

test('a CNAME for the platform resolves, also through other CNAMEs and in any case', async () => {
  dns.set(hostname, 'CNAME', 'Sign.Example');
  expect(await check('verified')).toEqual({ from: 'verified', proven: true, resolves: true, problem: '' });
  dns.set(hostname, 'CNAME', `alias.${hostname}`);
  dns.set(`alias.${hostname}`, 'CNAME', 'sign.example');
  expect(await check('verified')).toMatchObject({ resolves: true });
});

test('an address that DNS64 made from one of the platform’s is the platform’s', async () => {
  dns.set(hostname, 'A', '192.0.2.10');
  dns.set(hostname, 'AAAA', '64:ff9b::c000:20a');
  expect(await check('verified')).toMatchObject({ resolves: true, problem: '' });
  dns.set(hostname, 'AAAA', '64:ff9b::c000:20b');
  expect(await check('verified')).toMatchObject({ resolves: false });
});

test('a cycle of CNAMEs ends', async () => {
  dns.set(hostname, 'CNAME', `alias.${hostname}`);
  dns.set(`alias.${hostname}`, 'CNAME', `last.${hostname}`);
  dns.set(`last.${hostname}`, 'CNAME', 'elsewhere.example');
  expect(await check('live')).toMatchObject({ resolves: false });
});

test('of a chain of CNAMEs only the first eight are followed', async () => {
  const names = [hostname, ...Array.from({ length: 8 }, (_, hop) => `${hop}.${hostname}`), 'sign.example'];
  for (const [hop, name] of names.entries()) if (hop < 9) dns.set(name, 'CNAME', `${names[hop + 1]}`);
  expect(await check('live')).toMatchObject({ resolves: false });
  dns.set(hostname, 'CNAME', `1.${hostname}`);
  expect(await check('live')).toMatchObject({ resolves: true });
});

test('addresses resolve to the platform when all of them are the platform’s', async () => {
  dns.set(hostname, 'A', '192.0.2.10');
  expect(await check('live')).toMatchObject({ resolves: true, problem: '' });
  dns.set(hostname, 'AAAA', '2001:db8::10');
  expect(await check('live')).toMatchObject({ resolves: true });
  dns.set(hostname, 'AAAA', '2001:db8::10', '2606:4700::66');
  expect(await check('live')).toMatchObject({
    resolves: false,
    problem: `${hostname} resolves to 2606:4700::66. Make ${hostname} a CNAME for sign.example, or give it only the addresses 192.0.2.10, 2001:DB8:0::10.`,
  });
});

test('a problem does not name the addresses that a name in the operator’s network has', async () => {
  dns.set(hostname, 'A', '10.0.3.7', '169.254.169.254');
  dns.set(hostname, 'AAAA', 'fd00::7');
  const beginning = async () => (await check('live')).problem.split('. Make')[0];
  expect(await beginning()).toBe(`${hostname} resolves to an address that is not public`);
  dns.set(hostname, 'AAAA', '2606:4700::66', '2606:4700::67', '::1');
  expect(await beginning()).toBe(
    `${hostname} resolves to 2606:4700::66, 2606:4700::67 and an address that is not public`,
  );
});

test('failing and silent resolvers reject with ResolversUnavailable', async () => {
  dns.mode = 'broken';
  await expect(check('live')).rejects.toThrow(ResolversUnavailable);
  dns.mode = 'silent';
  await expect(check('pending')).rejects.toThrow(ResolversUnavailable);
});

test('a look-up ends after 15 seconds, even if each of its queries is answered', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  let answers = 0;
  dns.onAnswer = () => {
    answers++;
    vi.advanceTimersByTime(2_900);
  };
  for (let hop = 0; hop < 8; hop++) dns.set(`${hop}.${hostname}`, 'CNAME', `${hop + 1}.${hostname}`);
  dns.set(hostname, 'CNAME', `0.${hostname}`);
  await expect(check('live')).rejects.toThrow(ResolversUnavailable);
  expect(answers).toBe(6);
});

test('an aborted look-up rejects at once', async () => {
  dns.mode = 'silent';
  await expect(check('pending', AbortSignal.timeout(50))).rejects.toThrow(ResolversUnavailable);
  await expect(check('pending', AbortSignal.abort())).rejects.toThrow('aborted');
});
