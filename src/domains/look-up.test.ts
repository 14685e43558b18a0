import { beforeEach, expect, test } from 'vitest';
import { startDns } from '../../test/harness/dns.ts';
import { lookUp, ResolversUnavailable } from './look-up.ts';

const dns = await startDns();
const platform = {
  host: 'sign.example',
  addresses: ['192.0.2.10', '2001:DB8:0::10'],
  resolvers: [dns.address],
};

let made = 0;
let hostname: string;
beforeEach(() => {
  dns.mode = 'answering';
  hostname = `menu${made++}.example`;
});

const look = (state: 'pending' | 'verified' | 'live', signal = new AbortController().signal) =>
  lookUp({ hostname, token: 'secret', state }, platform, signal);

test('a pending domain without its record is asked nothing else', async () => {
  const problem = `There is no TXT record at _signpost.${hostname} yet.`;
  expect(await look('pending')).toEqual({ from: 'pending', proven: false, resolves: undefined, problem });
});

test.each([
  ['another text', 'signpost-verify=other'],
  ['another case', 'signpost-verify=SECRET'],
  ['more than the text', 'signpost-verify=secret2'],
])('a record that holds %s proves nothing', async (_, text) => {
  dns.set(`_signpost.${hostname}`, 'TXT', text);
  expect(await look('pending')).toMatchObject({ proven: false, problem: expect.stringContaining('does not hold') });
});

test('the record proves, among others and cut into strings', async () => {
  dns.set(`_signpost.${hostname}`, 'TXT', 'v=spf1 -all', ['signpost-', 'verify=secret']);
  expect(await look('pending')).toMatchObject({ proven: true, resolves: false });
});

test('a record seen a moment ago is not believed any longer', async () => {
  dns.set(`_signpost.${hostname}`, 'TXT', 'signpost-verify=secret');
  expect(await look('pending')).toMatchObject({ proven: true });
  dns.set(`_signpost.${hostname}`, 'TXT');
  expect(await look('pending')).toMatchObject({ proven: false });
});

test('a CNAME for the platform leads here, by way of others too, and whatever its case', async () => {
  dns.set(hostname, 'CNAME', 'Sign.Example');
  expect(await look('verified')).toEqual({ from: 'verified', proven: true, resolves: true, problem: '' });
  dns.set(hostname, 'CNAME', `alias.${hostname}`);
  dns.set(`alias.${hostname}`, 'CNAME', 'sign.example');
  expect(await look('verified')).toMatchObject({ resolves: true });
});

test('aliases in a circle end', async () => {
  dns.set(hostname, 'CNAME', `alias.${hostname}`);
  dns.set(`alias.${hostname}`, 'CNAME', `last.${hostname}`);
  dns.set(`last.${hostname}`, 'CNAME', 'elsewhere.example');
  expect(await look('live')).toMatchObject({ resolves: false });
});

test('addresses lead here when all of them are the platform’s', async () => {
  dns.set(hostname, 'A', '192.0.2.10');
  expect(await look('live')).toMatchObject({ resolves: true, problem: '' });
  dns.set(hostname, 'AAAA', '2001:db8::10');
  expect(await look('live')).toMatchObject({ resolves: true });
  dns.set(hostname, 'AAAA', '2001:db8::10', '2001:db8::66');
  expect(await look('live')).toMatchObject({
    resolves: false,
    problem: `${hostname} resolves to 2001:db8::66. Let ${hostname} be a CNAME for sign.example, or give it no addresses but 192.0.2.10, 2001:DB8:0::10.`,
  });
});

test('resolvers that fail or stay silent say nothing about a domain', async () => {
  dns.mode = 'broken';
  await expect(look('live')).rejects.toThrow(ResolversUnavailable);
  dns.mode = 'silent';
  await expect(look('pending')).rejects.toThrow(ResolversUnavailable);
});

test('who stops waiting is not kept', async () => {
  dns.mode = 'silent';
  await expect(look('pending', AbortSignal.timeout(50))).rejects.toThrow(ResolversUnavailable);
  await expect(look('pending', AbortSignal.abort())).rejects.toThrow('aborted');
});
