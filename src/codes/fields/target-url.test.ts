import fc from 'fast-check';
import pg from 'pg';
import { afterAll, expect, test } from 'vitest';
import { newUuid } from '../../../common/contract/ids.ts';
import { freshDatabase } from '../../../test/harness/database.ts';
import { insertAccount } from '../../../test/harness/insert-account.ts';
import { readLandingPage } from './landing-page.ts';
import { platformHosts } from './platform-hosts.ts';
import { readTargets } from './target-url.ts';

const pool = new pg.Pool({ connectionString: (await freshDatabase()).url });
afterAll(() => pool.end());

const account = await insertAccount(pool);
const isPlatformHost = platformHosts('https://sign.example', ['192.0.2.10', '2001:DB8:0::10']);
const read = async (input: string) => (await readTargets(pool, isPlatformHost, account, [input]))[0];

test.each([
  'https://example.com',
  'http://example.com:8080/a?b=c#d',
  'HTTPS://EXAMPLE.COM/%20',
  'https://münchen.example/straße?q=ä',
  'https://xn--mnchen-3ya.example',
  'https://例え。テスト/',
  'https://i❤.ws',
  'https://my_shop.example.',
  'https://r3---sn-x.example',
  'http://intranet/menu',
  `https://${'a'.repeat(63)}.example/`,
  `https://${'a.'.repeat(123)}example/`,
  'http://10.0.0.7/x',
  'http://192.0.2.10/menu',
  'https://192.0.2.11/r/Ab3dE9k',
  'https://sign.example/about',
  'https://other.example/r/Ab3dE9k',
  'http://[2001:db8::1]/x',
])('%s is a valid target and stored as sent', async (url) => {
  expect(await read(`  ${url}\n`)).toEqual({ url });
});

test.each([
  ['', /is required/],
  ['   ', /is required/],
  ['ftp://example.com/x', /absolute http or https/],
  ['javascript:alert(1)', /absolute http or https/],
  ['//example.com', /absolute http or https/],
  ['/menu', /absolute http or https/],
  ['http:example.com', /absolute http or https/],
  ['https:///path', /absolute http or https/],
  ['https://exa mple.com', /absolute http or https/],
  ['https://example.com/\r\nset-cookie:x', /absolute http or https/],
  ['https://example.com\\@evil.example', /absolute http or https/],
  ['https://user:pass@example.com', /user name or password/],
  ['https://user@example.com', /user name or password/],
  ['https://sign.example/r/Ab3dE9k', /scan URL/],
  ['https://SIGN.example/r/Ab3dE9k/', /scan URL/],
  ['https://sign.example/r/Ab3dE9k?x=1#y', /scan URL/],
  ['https://sign.example./r/Ab3dE9k', /scan URL/],
  ['https://sign.example%2e:443/r/Ab3dE9k', /scan URL/],
  ['http://sign.example/r/Ab3dE9k', /scan URL/],
  ['http://sign.example:8080/r/Ab3dE9k', /scan URL/],
  ['https://ｓｉｇｎ。example/r/Ab3dE9k', /scan URL/],
  ['https://sign.example/r/%41b3dE9k', /scan URL/],
  ['https://sign.example/%72/Ab3dE9k', /scan URL/],
  ['https://sign.example/menu/../r/./Ab3dE9k', /scan URL/],
  ['http://192.0.2.10/r/Ab3dE9k', /scan URL/],
  ['https://192.0.2.10.:8443/r/Ab3dE9k', /scan URL/],
  ['https://3221225994/r/Ab3dE9k', /scan URL/],
  ['https://0300.0.2.012/r/Ab3dE9k', /scan URL/],
  ['https://0xc000020a/r/Ab3dE9k', /scan URL/],
  ['https://192.0.522/r/Ab3dE9k', /scan URL/],
  ['https://[::ffff:192.0.2.10]/r/Ab3dE9k', /scan URL/],
  ['https://[2001:db8::10]/r/Ab3dE9k', /scan URL/],
  ['https://[2001:0DB8:0:0:0:0:0:10]:443/r/Ab3dE9k', /scan URL/],
  ['https://a..b', /can be looked up/],
  ['https://.example.com', /can be looked up/],
  ['https://example.com../x', /can be looked up/],
  ['https://xn--a', /can be looked up/],
  ['https://www.XN--A.example', /can be looked up/],
  ['https://a!b.example', /can be looked up/],
  [`https://${'a'.repeat(64)}.example`, /can be looked up/],
  [`https://${'a.'.repeat(124)}example`, /can be looked up/],
  [`https://example.com/${'x'.repeat(2_048)}`, /at most 2048/],
])('%j is rejected', async (url, why) => {
  expect(await read(url)).toEqual({ problem: expect.stringMatching(why) });
});

test('a scan URL on a custom domain is rejected', async () => {
  await pool.query(`insert into verified_hostnames values ('go.example.org', '01890a5d-ac96-774b-bcce-b302099a8057')`);
  expect(await read('https://go.example.org/r/Ab3dE9k')).toEqual({ problem: expect.stringMatching(/scan URL/) });
  expect(await read('https://GO.example.org./r/Ab3dE9k')).toEqual({ problem: expect.stringMatching(/scan URL/) });
  const unverified = 'https://unverified.example.org/r/Ab3dE9k';
  expect(await read(unverified)).toEqual({ url: unverified });
});

test('a scan URL on a domain that is not verified is rejected for its own account only', async () => {
  const other = await insertAccount(pool);
  for (const [owner, hostname] of [
    [account, 'pending.example.org'],
    [other, 'foreign.example.org'],
  ]) {
    await pool.query(`insert into domains (id, account_id, hostname, token) values ($1, $2, $3, '')`, [
      newUuid(),
      owner,
      hostname,
    ]);
  }
  expect(await read('https://pending.example.org/r/Ab3dE9k')).toEqual({ problem: expect.stringMatching(/scan URL/) });
  for (const url of ['https://pending.example.org/menu', 'https://foreign.example.org/r/Ab3dE9k']) {
    expect(await read(url)).toEqual({ url });
  }
});

test('if the platform runs on localhost, all local names and addresses are the platform', async () => {
  const local = platformHosts('http://localhost:8080', []);
  for (const host of [
    'localhost:8080',
    'LOCALHOST.:8080',
    'x.localhost',
    '127.0.0.1:8080',
    '127.1',
    '[::1]',
    '0.0.0.0',
  ]) {
    const [target] = await readTargets(pool, local, account, [`http://${host}/r/Ab3dE9k`]);
    expect(target).toEqual({ problem: expect.stringMatching(/scan URL/) });
  }
  const elsewhere = 'http://localhost.example/r/Ab3dE9k';
  expect(await readTargets(pool, local, account, [elsewhere])).toEqual([{ url: elsewhere }]);
});

test('no spelling of a platform address or of its name is accepted', async () => {
  const [a, b, c, d] = [192, 0, 2, 10];
  const radix = fc.constantFrom(
    (part: number) => `${part}`,
    (part: number) => `0${part.toString(8)}`,
    (part: number) => `0x${part.toString(16)}`,
  );
  const numbers = fc.constantFrom([a, b, c, d], [a, b, c * 256 + d], [a, c * 256 + d], [a * 2 ** 24 + c * 256 + d]);
  const address = fc
    .tuple(numbers, fc.array(radix, { minLength: 4, maxLength: 4 }))
    .map(([parts, written]) => parts.map((part, index) => written[index]?.(part)).join('.'));
  const name = fc
    .array(fc.constantFrom('plain', 'upper', 'percent', 'wide'), { minLength: 12, maxLength: 12 })
    .map((spellings) => [...'sign.example'].map((letter, index) => spelled(letter, spellings[index] ?? '')).join(''));
  const dot = fc.constantFrom('', '.');
  const port = fc.constantFrom('', ':80', ':443', ':8443', ':08080');
  const tail = fc.constantFrom('', '/', '?a=1', '#x', '/?utm_source=poster');
  const url = fc
    .tuple(fc.constantFrom('http', 'HTTPS'), fc.oneof(address, name), dot, port, tail)
    .map(([scheme, host, end, at, rest]) => `${scheme}://${host}${end}${at}/r/Ab3dE9k${rest}`);
  await fc.assert(
    fc.asyncProperty(url, async (each) => {
      expect(await read(each)).toEqual({ problem: expect.stringMatching(/scan URL/) });
    }),
  );
});

function spelled(letter: string, spelling: string): string {
  if (spelling === 'upper') return letter.toUpperCase();
  if (spelling === 'percent') return `%${letter.charCodeAt(0).toString(16)}`;
  return spelling === 'wide' ? String.fromCodePoint(letter.charCodeAt(0) + 0xfee0) : letter;
}

test('a name in any script is accepted if its ASCII form is a valid DNS name', async () => {
  const label = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
    .filter((text) => !/[\s/?#@:\\[\]%]/.test(text));
  await fc.assert(
    fc.asyncProperty(fc.array(label, { minLength: 1, maxLength: 4 }), async (labels) => {
      const url = `https://${labels.join('.')}.example/`;
      const hostname = URL.parse(url)?.hostname;
      const fits = hostname?.split('.').every((each) => /^[a-z0-9_-]{1,63}$/.test(each)) && hostname.length <= 253;
      // Invalid Punycode is tested above.
      fc.pre(!labels.some((each) => /^xn--/i.test(each)));
      expect('url' in ((await read(url)) ?? {})).toBe(fits ?? false);
    }),
  );
});

test('links of landing pages follow the same rule for hosts', () => {
  const page = (url: string) => ({
    title: 'Menu',
    text: '',
    links: [{ label: 'a', url }],
    foregroundColor: '',
    backgroundColor: '',
  });
  expect(() => readLandingPage(page('https://a..b/') as never)).toThrow(/links\[0\]\.url: must have a host/);
});
