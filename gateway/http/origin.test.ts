import type { IncomingHttpHeaders } from 'node:http';
import { describe, expect, test } from 'vitest';
import { originReader } from './origin.ts';

const originOf = originReader(['10.0.0.0/8', '2001:db8:1::/48', '192.0.2.10']);

describe('without a trusted proxy', () => {
  test.each<IncomingHttpHeaders>([
    { forwarded: 'for=198.51.100.7;host=other.example' },
    { 'x-forwarded-for': '198.51.100.7', 'x-forwarded-host': 'other.example' },
  ])('the client’s own forwarding headers are ignored: %j', (headers) => {
    const host = 'Go.Example.com:8080';
    const origin = { hostname: 'go.example.com', address: '203.0.113.5', proxied: false };
    expect(originOf('203.0.113.5', { ...headers, host })).toEqual(origin);
    expect(originOf('::ffff:203.0.113.5', { ...headers, host })).toEqual(origin);
  });
});

describe('behind trusted proxies', () => {
  test.each([
    ['for=198.51.100.7', '198.51.100.7'],
    ['for="198.51.100.7:4711"', '198.51.100.7'],
    ['For="[2001:db8:9::1]:4711";proto=https', '2001:db8:9::1'],
    ['proto=https;for=198.51.100.7;by=10.0.0.1', '198.51.100.7'],
    ['for=198.51.100.7, for=10.1.2.3', '198.51.100.7'],
    ['for=6.6.6.6, for=198.51.100.7, for="[2001:db8:1::5]"', '198.51.100.7'],
    ['for="x, for="[2001:db8:9::1]:4711"', '2001:db8:9::1'],
    ['for="x\\", for=198.51.100.7;host="a,b\\"";by="10.0.0.1", for=10.1.2.3', '198.51.100.7'],
    ['for=6.6.6.6;;;=, for = 198.51.100.7', '10.0.0.1'],
    ['for=6.6.6.6, ; for=198.51.100.7 ; host=a ;', '198.51.100.7'],
    ['for=10.9.9.9, for=10.1.2.3', '10.0.0.1'],
    ['for=6.6.6.6, for=unknown', '10.0.0.1'],
    ['for=6.6.6.6, for=_hidden', '10.0.0.1'],
    ['', '10.0.0.1'],
  ])('the client is the last node that is not a trusted proxy: Forwarded: %s', (forwarded, address) => {
    expect(originOf('10.0.0.1', { forwarded })).toMatchObject({ address, proxied: true });
  });

  test.each([
    ['198.51.100.7', '198.51.100.7'],
    ['6.6.6.6, 198.51.100.7 ,10.9.9.9', '198.51.100.7'],
    ['::ffff:198.51.100.7', '198.51.100.7'],
    ['::FFFF:198.51.100.7', '198.51.100.7'],
    ['0:0:0:0:0:ffff:c633:6407', '198.51.100.7'],
    ['2A00:1450:4001:80B::200E', '2a00:1450:4001:80b::200e'],
    ['[2a00:1450:4001:080b:0:0:0:200e]:4711', '2a00:1450:4001:80b::200e'],
    ['fe80::1%eth0', 'fe80::1'],
    ['0000:0000:0000:0000:0000:ffff:198.051.100.7%1', '10.0.0.1'],
    ['0000:0000:0000:0000:0000:ffff:198.151.100.117%1', '198.151.100.117'],
    ['198.51.100.7:4711', '198.51.100.7'],
    ['6.6.6.6, nonsense', '10.0.0.1'],
  ])('the same by X-Forwarded-For: %s', (given, address) => {
    expect(originOf('10.0.0.1', { 'x-forwarded-for': given })).toMatchObject({ address });
  });

  test('a Forwarded header in addition to the proxy’s own X-Forwarded-* was sent by the client and is ignored', () => {
    const host = 'go.example.com';
    const forwarded = 'for=6.6.6.6;host=other.example';
    const client = { hostname: host, address: '198.51.100.7', proxied: true };
    expect(originOf('10.0.0.1', { host, forwarded, 'x-forwarded-for': '198.51.100.7' })).toEqual(client);
    expect(originOf('10.0.0.1', { host: 'internal', forwarded, 'x-forwarded-host': host })).toMatchObject({
      hostname: host,
      address: '10.0.0.1',
    });
  });

  test('the hostname is the one that the client requested', () => {
    const host = 'internal:8080';
    expect(originOf('192.0.2.10', { host, forwarded: 'for=198.51.100.7;host="Go.Example.com:443"' }).hostname).toBe(
      'go.example.com',
    );
    expect(originOf('192.0.2.10', { host, 'x-forwarded-host': 'go.example.com' }).hostname).toBe('go.example.com');
    expect(originOf('192.0.2.10', { host }).hostname).toBe('internal');
  });

  test.each([
    ['Forwarded', { forwarded: 'for=6.6.6.6;host=forged.example, for=198.51.100.7;host=go.example.com' }],
    [
      'the first of two proxies',
      { forwarded: 'host=forged.example, for=198.51.100.7;host=go.example.com, for=10.1.2.3' },
    ],
    [
      'the only proxy that reports it',
      { forwarded: 'host=forged.example, for=198.51.100.7, for=10.1.2.3;host=go.example.com' },
    ],
    [
      'two proxies',
      { forwarded: 'host=forged.example, for=198.51.100.7;host=go.example.com, for=10.1.2.3;host=internal' },
    ],
    ['X-Forwarded-Host', { 'x-forwarded-host': 'forged.example, go.example.com' }],
  ])('not the one that the client wrote before what proxies append: %s', (_, headers) => {
    expect(originOf('10.0.0.1', { host: 'internal', ...headers }).hostname).toBe('go.example.com');
  });
});

test.each([
  ...[
    'go.example.com:',
    'GO.example.com:8080',
    'go.example.com.',
    'go.example.com..',
    'go.example.com.:',
    '%67o.example.com',
  ],
  ...['go%2eexample.com', 'go.example.com%2e:', 'go.example.com:99999'],
])('every spelling of a host is one hostname: %s', (host) => {
  expect(originOf('203.0.113.5', { host }).hostname).toBe('go.example.com');
  expect(originOf('10.0.0.1', { 'x-forwarded-host': host }).hostname).toBe('go.example.com');
  expect(originOf('10.0.0.1', { forwarded: `host="${host}"` }).hostname).toBe('go.example.com');
});

test.each([
  ['[2001:db8::1]:80', '[2001:db8::1]'],
  ['a b', 'a b'],
  ['%zz', '%zz'],
  ['..', ''],
  ['', ''],
])('a host that is no name has a hostname too: %s', (host, hostname) => {
  expect(originOf('203.0.113.5', { host }).hostname).toBe(hostname);
});

test.each([' ', '"', '\\"', ';', ',', 'for="', ';for=', ':', '[', '%', '\\', 'host="a";', 'for=10.0.0.1,'])(
  'a long Forwarded takes linear time: %j again and again',
  (piece) => {
    const repeated = piece.repeat(200_000 / piece.length);
    for (const forwarded of [`=${repeated}=`, repeated, `a=${repeated}x`]) {
      originOf('10.0.0.1', { forwarded });
      originOf('10.0.0.1', { 'x-forwarded-for': forwarded });
    }
    // Quadratic time would exceed the test's timeout.
  },
);
