import pg from 'pg';
import { afterAll, expect, test } from 'vitest';
import { freshDatabase } from '../../test/harness/database.ts';
import { readTargets } from './target-url.ts';

const pool = new pg.Pool({ connectionString: (await freshDatabase()).url });
afterAll(() => pool.end());

const read = async (input: string) => (await readTargets(pool, 'https://sign.example', [input]))[0];

test.each([
  'https://example.com',
  'http://example.com:8080/a?b=c#d',
  'HTTPS://EXAMPLE.COM/%20',
  'https://münchen.example/straße?q=ä',
  'https://sign.example/about',
  'https://other.example/r/Ab3dE9k',
  'http://[2001:db8::1]/x',
])('%s is a target, stored as sent', async (url) => {
  expect(await read(`  ${url}\n`)).toEqual({ url });
});

test.each([
  ['', /is needed/],
  ['   ', /is needed/],
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
  [`https://example.com/${'x'.repeat(2_048)}`, /at most 2048/],
])('%j is refused', async (url, why) => {
  expect(await read(url)).toEqual({ problem: expect.stringMatching(why) });
});

test('a scan URL on a custom domain is refused as well', async () => {
  await pool.query(
    `insert into accounts (id, name, plan) values ('01890a5d-ac96-774b-bcce-b302099a8057', 'x', 'free')`,
  );
  await pool.query(
    `insert into domains (id, account_id, hostname, token, state)
     values (gen_random_uuid(), '01890a5d-ac96-774b-bcce-b302099a8057', 'go.example.org', 't', 'verified'),
            (gen_random_uuid(), '01890a5d-ac96-774b-bcce-b302099a8057', 'unproven.example.org', 't', 'pending')`,
  );
  expect(await read('https://go.example.org/r/Ab3dE9k')).toEqual({ problem: expect.stringMatching(/scan URL/) });
  expect(await read('https://GO.example.org./r/Ab3dE9k')).toEqual({ problem: expect.stringMatching(/scan URL/) });
  const unproven = 'https://unproven.example.org/r/Ab3dE9k';
  expect(await read(unproven)).toEqual({ url: unproven });
});
