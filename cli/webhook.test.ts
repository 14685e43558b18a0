import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { decodeId } from '../common/contract/ids.ts';
import { ACCEPT, type Responder, startReceiver } from '../src/webhooks/receiver.fixture.ts';
import { type Signpost, startSignpost } from '../test/harness/processes.ts';
import { commandLine } from './cli.fixture.ts';

const EVENTUALLY = { timeout: 30_000, interval: 100 };
let signpost: Signpost;
let pool: pg.Pool;
let account: string;

beforeAll(async () => {
  signpost = await startSignpost({ gateways: 0, env: { ROLES: 'rpc,relay,worker', WEBHOOKS_ALLOW_PRIVATE: 'true' } });
  pool = new pg.Pool({ connectionString: signpost.databaseUrl });
});
afterAll(() => pool.end());
beforeEach(async () => {
  ({ accountId: account } = await signpost.createAccount());
});

const cli = commandLine(() => signpost);
const run = (...args: string[]) => cli.run(['webhook', ...args, '--account', account]);
const json = <Value>(...args: string[]) => cli.json<Value>('webhook', ...args, '--account', account);
const unfulfilled = <Value>(...args: string[]) => cli.unfulfilled<Value>('webhook', ...args, '--account', account);

interface Endpoint {
  readonly id: string;
  readonly secret: string;
}

interface Delivery {
  readonly id: string;
  readonly status: string;
  readonly attempts: readonly object[];
}

const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);

test('adds, lists, updates and removes an endpoint, and rotates its secret', async () => {
  const url = 'http://127.0.0.1:1/signpost';
  const added = await json<Endpoint>('add', '--url', url, '--events', 'qr.created, bulk.completed');
  expect(added).toEqual({
    id: expect.stringMatching(/^hook_/),
    url,
    events: ['qr.created', 'bulk.completed'],
    secret: expect.stringMatching(/^whsec_/),
  });
  const { id, secret } = added;
  const shown = { id, url, events: ['qr.created', 'bulk.completed'], enabled: true, disabled_reason: null };
  // No server listens on port 1.
  await vi.waitFor(async () => {
    const states = { verified_at: null, failing_since: TIME };
    expect(await json('list')).toEqual([{ ...shown, ...states, created_at: TIME }]);
  }, EVENTUALLY);
  const events = ['team.member_added', 'qr.created'];
  const changed = { id, url, events, enabled: false, disabled_reason: 'It was switched off.' };
  const repeated = events.flatMap((type) => ['--events', type]);
  expect(await json('update', '--id', id, ...repeated, '--disable')).toMatchObject(changed);
  expect(await json('update', '--id', id, '--enable')).toMatchObject({ enabled: true });
  const rotated = await json<Endpoint>('rotate-secret', '--id', id);
  expect(rotated).toEqual({ id, secret: expect.stringMatching(/^whsec_/) });
  expect(rotated.secret).not.toBe(secret);
  expect(await json('remove', '--id', id, '--yes')).toEqual({ id, deleted: true });
  expect(await json('list')).toEqual([]);
});

test('sends a test event, lists its attempts and sends it again', async () => {
  let respond: Responder = ACCEPT;
  const receiver = await startReceiver((received, response) => respond(received, response));
  const { id } = await json<Endpoint>('add', '--url', receiver.url, '--events', 'qr.created');
  await vi.waitFor(async () => {
    expect(await json('list')).toMatchObject([{ verified_at: TIME, failing_since: null }]);
  }, EVENTUALLY);
  respond = (_, response) => void response.writeHead(410).end('gone for now');
  const attempt = { at: TIME, status: 410, latency_ms: expect.any(Number), response: 'gone for now' };
  const sent = await unfulfilled<Delivery>('test', '--id', id);
  const kind = { id: expect.stringMatching(/^dlv_/), event_type: 'webhook.test' };
  expect(sent).toMatchObject({ ...kind, attempts: [attempt] });
  await vi.waitFor(async () => {
    const listed = await json<Delivery[]>('deliveries', '--id', id, '--status', 'failed');
    expect(listed).toMatchObject([{ id: sent.id, status: 'failed', next_attempt_at: null, attempts: [attempt] }]);
  }, EVENTUALLY);
  respond = (_, response) => void response.writeHead(200).end('thanks');
  await json('update', '--id', id, '--enable');
  const thanks = { status: 'succeeded', attempts: [attempt, { status: 200, response: 'thanks' }] };
  expect(await json('resend', '--delivery', sent.id)).toMatchObject([{ id: sent.id, ...thanks }]);
  expect(await json('test', '--id', id)).toMatchObject({ ...kind, status: 'succeeded', attempts: [{ status: 200 }] });
  expect(await json('resend', '--id', id, '--since', '2026-01-01T00:00:00Z')).toEqual({ deliveries: 0 });
  const { stdout } = await run('deliveries', '--id', id);
  expect(stdout).toMatch(/webhook\.test +succeeded +2 +200 in \d+ ms/);
  expect((await run('update', '--id', id)).stderr).toBe(
    'Give at least one of --url, --events, --enable and --disable.\n',
  );
});

test('resend waits for the response, however many attempts and newer deliveries there are', async () => {
  const { url } = await startReceiver(ACCEPT);
  const { id } = await json<Endpoint>('add', '--url', url, '--events', 'qr.created');
  await vi.waitFor(async () => {
    expect(await json('deliveries', '--id', id)).toMatchObject([{ status: 'succeeded' }]);
  }, EVENTUALLY);
  const [delivery] = await json<Delivery[]>('deliveries', '--id', id);
  const uuid = decodeId('dlv', delivery?.id ?? '');
  await pool.query(
    `insert into webhook_attempts
     select $1, now() - n * interval '1 hour', 500, 1, '' from generate_series(1, 30) as n`,
    [uuid],
  );
  await pool.query(
    `insert into webhook_deliveries (id, endpoint_id, account_id, event_id, event_type, body, status, next_attempt_at)
     select uuidv7(), endpoint_id, account_id, uuidv7(), event_type, body, 'failed', null
     from webhook_deliveries, generate_series(1, 101) where id = $1`,
    [uuid],
  );
  const { code, stdout, stderr } = await run('resend', '--delivery', delivery?.id ?? '');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/^status +succeeded$/m);
  expect(stdout).toMatch(/^attempts +20\+$/m);
});

test('resend sends all failed deliveries again, of which the core takes 10,000 at a time', async () => {
  // It is not verified, so nothing but its test event is sent.
  const { id } = await json<Endpoint>('add', '--url', 'http://127.0.0.1:1/', '--events', 'qr.created');
  await pool.query(
    `insert into webhook_deliveries (id, endpoint_id, account_id, event_id, event_type, body, status, next_attempt_at)
     select uuidv7(), id, account_id, uuidv7(), 'qr.created', '{}', 'failed', null
     from webhook_endpoints, generate_series(1, 10001) where id = $1`,
    [decodeId('hook', id)],
  );
  expect(await json('resend', '--id', id, '--since', '2026-01-01T00:00:00Z')).toEqual({ deliveries: 10_001 });
});

test('exits with 2 after invalid usage, and with 1 and a sentence after a rejected call', async () => {
  for (const args of [
    ['add'],
    ['test'],
    ['resend', '--since', 'yesterday'],
    ['resend', '--delivery', 'dlv_x', '--id', 'hook_x', '--since', '2026-11-20T09:00:00Z'],
    ['deliveries', '--id', 'x', '--limit', '-1'],
  ]) {
    expect(await run(...args)).toMatchObject({ code: 2, stdout: '' });
  }
  const rejection = async (...args: string[]) => {
    const { code, stdout, stderr } = await run(...args);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    return stderr;
  };
  expect(await rejection('add', '--url', 'example.com', '--events', 'qr.created')).toMatch(
    /^--url: must be an absolute/,
  );
  expect(await rejection('add', '--url', 'https://example.com', '--events', 'x')).toMatch(
    /^--events: each must be one of/,
  );
  expect(await rejection('remove', '--id', 'hook_x', '--yes')).toBe(
    '--id: there is no such webhook endpoint on this account.\n',
  );
  const stderr = 'Specify one delivery with --delivery, or failed ones with --id and --since.\n';
  expect(await run('resend')).toEqual({ code: 2, stdout: '', stderr });
});
