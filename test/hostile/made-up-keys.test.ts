import { request as httpRequest } from 'node:http';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { newApiKey } from '../../src/access/api-key.ts';
import { type Account, contract } from '../contract/client.ts';

const FAILURES = 8;
/** Unknown keys that are checked at a time: of one client address, by one worker, and by one core. */
const [OF_ADDRESS, OF_WORKER, OF_CORE] = [1, 2, 8];
const EVENTUALLY = { interval: 20 };

const running = contract({
  env: { GATEWAY_WORKERS: '1', FAILED_AUTHENTICATIONS_PER_MINUTE: String(FAILURES) },
});
let account: Account;
let database: pg.Client;
beforeAll(async () => {
  account = await running.account();
  database = new pg.Client({ connectionString: running.signpost.databaseUrl });
  await database.connect();
});
afterAll(() => database.end());

function status(
  url: string,
  localAddress: string,
  options: { apiKey?: string; method?: string } = {},
): Promise<number> {
  const { apiKey = newApiKey(), method = 'GET' } = options;
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const sent = httpRequest(url, { method, localAddress, headers, agent: false }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode ?? 0));
    });
    sent.once('error', reject).end(method === 'POST' ? '{}' : undefined);
  });
}

const folders = () => `${running.signpost.url}/api/v1/folders`;
const address = (n: number) => `127.0.2.${n}`;

/** The number of look-ups of keys that are waiting for a lock on the keys. */
async function lookUps(): Promise<number> {
  const { rows } = await database.query<{ count: number }>(
    `select count(*)::integer as count from pg_locks where relation = 'api_keys'::regclass and not granted`,
  );
  return rows[0]?.count ?? 0;
}

/** Runs `check` while no look-up of a key can finish. */
async function whileKeysAreLocked(check: () => Promise<void>): Promise<void> {
  await database.query('begin; lock table api_keys in access exclusive mode');
  try {
    await check();
  } finally {
    await database.query('commit');
  }
}

const stays = async (count: number) => {
  await expect.poll(lookUps, EVENTUALLY).toBe(count);
  for (let n = 0; n < 10; n++) expect(await lookUps()).toBe(count);
};

test('a gateway has few unknown keys looked up at a time, and known keys pass them', async () => {
  expect((await account.call('GET', '/folders')).status).toBe(200);
  const answers: Promise<number>[] = [];
  const send = (from: string, apiKey?: string) => answers.push(status(folders(), from, apiKey ? { apiKey } : {}));
  await whileKeysAreLocked(async () => {
    for (let n = 0; n < 6; n++) send(address(1));
    await stays(OF_ADDRESS);
    for (let n = 0; n < 20; n++) send(address(2 + n));
    await stays(OF_WORKER);
    send(address(1), account.apiKey);
    await stays(OF_WORKER + 1);
  });
  const known = answers.pop();
  expect(await known).toBe(200);
  expect(new Set(await Promise.all(answers))).toEqual(new Set([401]));
});

test('an address that has failed too often meanwhile gets a 429 without a look-up', async () => {
  const answers: Promise<number>[] = [];
  await whileKeysAreLocked(async () => {
    for (let n = 0; n < 5 * FAILURES; n++) answers.push(status(folders(), address(100)));
    await stays(OF_ADDRESS);
  });
  const all = await Promise.all(answers);
  const failed = all.filter((each) => each === 401).length;
  expect(failed).toBeGreaterThanOrEqual(FAILURES);
  // Those that were being looked up when the limit was reached, or had just been.
  expect(failed).toBeLessThanOrEqual(FAILURES + 2 * OF_ADDRESS);
  expect(all.filter((each) => each === 429)).toHaveLength(all.length - failed);
});

test('a key whose first request its plan rejects is known to be valid', async () => {
  const { apiKey } = await running.account({ plan: Plan.FREE });
  const list = () => status(folders().replace('/folders', '/qr-codes'), address(101), { apiKey });
  expect(await list()).toBe(403);
  const wrong = async () => (await status(folders(), address(101))) === 429;
  await expect.poll(wrong, EVENTUALLY).toBe(true);
  expect(await list()).toBe(403);
});

test('a core, too, has few unknown keys looked up at a time on its own ports', async () => {
  const url = `http://127.0.0.1:${running.signpost.corePort}/signpost.taxonomy.v1.TaxonomyService/ListFolders`;
  expect(await status(url, address(1), { apiKey: account.apiKey, method: 'POST' })).toBe(200);
  const answers: Promise<number>[] = [];
  await whileKeysAreLocked(async () => {
    for (let n = 0; n < 3 * OF_CORE; n++) answers.push(status(url, address(1), { method: 'POST' }));
    await stays(OF_CORE);
    answers.push(status(url, address(1), { apiKey: account.apiKey, method: 'POST' }));
    await stays(OF_CORE + 1);
  });
  expect(await answers.pop()).toBe(200);
  expect(new Set(await Promise.all(answers))).toEqual(new Set([401]));
});
