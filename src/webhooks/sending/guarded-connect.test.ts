import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { Agent } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isPublicAddress } from '../../../common/runtime/public-address.ts';
import { type Dns, startDns } from '../../../test/harness/dns.ts';
import { newSecret } from '../signature.ts';
import { attempt, type Outcome } from './attempt.ts';
import { guardedConnect } from './guarded-connect.ts';

const REJECTED = 'The address is not on the public Internet.';
const PUBLIC = '93.184.215.14';

/** Listens on all addresses of this machine, and counts connections. */
let server: Server;
let port: number;
let connections = 0;
let dns: Dns;
let agent: Agent;

beforeAll(async () => {
  server = createServer((socket) => {
    connections++;
    socket.destroy();
  });
  server.listen(0, '::');
  await once(server, 'listening');
  const address = server.address();
  port = typeof address === 'object' && address ? address.port : 0;
  dns = await startDns();
  agent = new Agent({ connect: guardedConnect([dns.address]) });
});
afterAll(async () => {
  await agent.destroy();
  server.close();
});

async function call(url: string, timeoutMs = 10_000): Promise<Outcome | undefined> {
  const request = { url, secrets: [newSecret()], id: 'evt_1', at: new Date(), body: '{}' };
  return attempt(agent, request, { stop: new AbortController().signal, timeoutMs });
}

/** Hosts as written in the URL of an endpoint; none is a public address. */
const HOSTILE_HOSTS = [
  // Loopback, in all notations that URLs allow.
  ...['127.0.0.1', '127.1', '127.0.1', '127.255.255.254', '2130706433', '0x7f000001', '0x7f.1', '0x7F.0x0.0x0.0x1'],
  ...['017700000001', '0177.0.0.1', '0177.0.0.01', '127.0.0.1.', '127%2e0%2e0%2e1', '１２７.０.０.１', '127。0。0。1'],
  // This host, private networks, shared and link-local addresses.
  ...['0.0.0.0', '0', '0x0', '10.0.0.1', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.0.1', '3232235521'],
  ...['100.64.0.1', '100.127.255.254', '169.254.0.1', '192.0.0.1', '198.18.0.1', '198.19.255.255'],
  // Metadata services of clouds.
  ...[
    '169.254.169.254',
    '0xa9fea9fe',
    '2852039166',
    '169.254.170.2',
    '100.100.100.200',
    '168.63.129.16',
    '192.0.0.192',
  ],
  // Documentation, multicast, reserved, broadcast.
  ...['192.0.2.1', '198.51.100.1', '203.0.113.1', '224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255'],
  // IPv6: loopback, unspecified, link-local, site-local, unique local, metadata.
  ...[
    '[::1]',
    '[0:0:0:0:0:0:0:1]',
    '[0000::0001]',
    '[::]',
    '[fe80::1]',
    '[febf::1]',
    '[fec0::1]',
    '[fc00::1]',
    '[fd00::1]',
  ],
  '[fd00:ec2::254]',
  // IPv4 inside IPv6: mapped, compatible, translated, 6to4, Teredo, NAT64.
  ...[
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::ffff:10.0.0.1]',
    '[::ffff:a9fe:a9fe]',
    '[::127.0.0.1]',
    '[::7f00:1]',
  ],
  ...['[::ffff:0:127.0.0.1]', '[2002:7f00:1::]', '[2002:a00:1::1]', '[2001:0:7f00:1::1]', '[64:ff9b::7f00:1]'],
  ...['[64:ff9b::169.254.169.254]', '[64:ff9b:1::a00:1]'],
  // IPv6: documentation, multicast, discard, segment routing, unallocated.
  ...['[2001:db8::1]', '[3fff::1]', '[ff02::1]', '[100::1]', '[5f00::1]', '[4000::1]'],
];

test('the table has more than 40 hosts', () => expect(new Set(HOSTILE_HOSTS).size).toBeGreaterThan(40));

test.each(HOSTILE_HOSTS)('%s is rejected without a connection', async (host) => {
  const before = connections;
  for (const scheme of ['http', 'https']) {
    expect(await call(`${scheme}://${host}:${port}/hook`)).toMatchObject({ status: null, response: REJECTED });
  }
  expect(connections).toBe(before);
});

test.each([
  ['A', '127.0.0.1'],
  ['A', '10.1.2.3'],
  ['A', '169.254.169.254'],
  ['AAAA', '::1'],
  ['AAAA', '::ffff:127.0.0.1'],
  ['AAAA', 'fd00::5'],
] as const)('a name that resolves to %s %s is rejected', async (type, address) => {
  dns.set('inside.example', 'A');
  dns.set('inside.example', 'AAAA');
  dns.set('inside.example', type, address);
  const before = connections;
  expect(await call(`http://inside.example:${port}/`)).toMatchObject({ status: null, response: REJECTED });
  expect(connections).toBe(before);
});

test('an alias of a name that resolves to a private address is rejected', async () => {
  dns.set('origin.example', 'A', '127.0.0.1');
  dns.set('alias.example', 'CNAME', 'origin.example');
  expect(await call(`http://alias.example:${port}/`)).toMatchObject({ response: REJECTED });
});

test('one private address among public ones rejects them all', async () => {
  dns.set('both.example', 'A', PUBLIC, '127.0.0.1');
  expect(await call(`http://both.example:${port}/`)).toMatchObject({ response: REJECTED });
  dns.set('mixed.example', 'A', PUBLIC);
  dns.set('mixed.example', 'AAAA', '::1');
  expect(await call(`http://mixed.example:${port}/`)).toMatchObject({ response: REJECTED });
});

test('names are not resolved from /etc/hosts', async () => {
  const before = connections;
  expect(await call(`http://localhost:${port}/`)).toMatchObject({
    response: 'The host name does not resolve to an address.',
  });
  expect(connections).toBe(before);
});

test('each connection resolves and checks a name once, so that a changed address has no effect (DNS rebinding)', async () => {
  let queries = 0;
  dns.set('rebind.example', 'A', PUBLIC);
  dns.onAnswer = (name, type) => {
    if (name !== 'rebind.example' || type !== 'A') return;
    queries++;
    dns.set(name, type, '127.0.0.1');
  };
  const before = connections;
  // The public address was checked, and is the one connected to, whether or not a server listens there.
  const first = await call(`http://rebind.example:${port}/`, 500);
  expect(first?.response).not.toBe(REJECTED);
  expect(queries).toBe(1);
  expect(await call(`http://rebind.example:${port}/`)).toMatchObject({ status: null, response: REJECTED });
  expect(queries).toBe(2);
  expect(connections).toBe(before);
});

test.each(['93.184.215.14', '1.1.1.1', '100.128.0.1', '172.32.0.1', '2606:4700:4700::1111', '::ffff:1.1.1.1'])(
  '%s is public',
  (address) => expect(isPublicAddress(address)).toBe(true),
);

test.each(['', 'localhost', '1.1.1', '0x1.1.1.1', '1.1.1.1%eth0', '[::1]'])('%j is not an address', (text) => {
  expect(isPublicAddress(text)).toBe(false);
});
