import { randomBytes } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import jsqr from 'jsqr';
import { pino } from 'pino';
import { PNG } from 'pngjs';
import { beforeAll, expect, test } from 'vitest';
import { AccountsService } from '../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { type Domain, DomainsService } from '../proto/gen/signpost/domains/v1/domains_pb.ts';
import { backgroundTasks } from '../src/compose.ts';
import { openDatabase } from '../src/db/database.ts';
import { entities } from '../src/entities.ts';
import { startWorker } from '../src/jobs/worker.ts';
import { internal } from './contract/internal.ts';
import { type Dns, startDns } from './harness/dns.ts';
import { type Signpost, startSignpost } from './harness/processes.ts';

/** What becomes of codes, scans, images and certificates in each state of a custom domain. */

const EVENTUALLY = { interval: 50 };
const TARGET = 'https://example.com/menu';

let dns: Dns;
let signpost: Signpost;

beforeAll(async () => {
  dns = await startDns();
  const env = { ROLES: 'rpc,relay', PUBLIC_URL: 'https://sign.example', DNS_RESOLVERS: dns.address };
  signpost = await startSignpost({ env });
  // Of the role `worker` only what creates batches: the other half of it would look domains up by itself.
  const database = await openDatabase(signpost.databaseUrl, 5, entities);
  const logger = pino({ level: 'silent' });
  const { databaseUrl } = signpost;
  const worker = startWorker({
    databaseUrl,
    database,
    tasks: backgroundTasks(database, env.PUBLIC_URL),
    logger,
  });
  return async () => {
    await worker.stop();
    await database.close();
  };
});

interface Owner {
  readonly accountId: string;
  readonly apiKey: string;
}

function call({ apiKey }: Owner, path: string, body?: unknown): Promise<Response> {
  const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  return fetch(`${signpost.url}/api/v1${path}`, { ...init, headers: { authorization: `Bearer ${apiKey}` } });
}

interface Code {
  readonly id: string;
  readonly domain_id: string | null;
  readonly short_code: string;
  readonly scan_url: string;
}

async function createCode(owner: Owner, domainId?: string): Promise<Code> {
  const answer = await call(owner, '/qr-codes', { target_url: TARGET, domain_id: domainId });
  expect(answer.status).toBe(201);
  return ((await answer.json()) as { data: Code }).data;
}

/** A GET with a `Host` of its own choosing, which `fetch` does not allow. */
function get(path: string, host?: string): Promise<{ status: number; location: string | undefined; body: string }> {
  return new Promise((resolve, reject) => {
    const headers = host === undefined ? {} : { host };
    httpRequest(`${signpost.url}${path}`, { headers }, async (response) => {
      const body = Buffer.concat(await response.toArray()).toString();
      resolve({ status: response.statusCode ?? 0, location: response.headers.location, body });
    })
      .once('error', reject)
      .end();
  });
}

const scan = async ({ short_code }: Code, host?: string) => (await get(`/r/${short_code}`, host)).status;
const ask = async (hostname: string) => (await get(`/tls/ask?domain=${hostname}`)).status;
const domainsOf = ({ accountId }: Owner) => internal(signpost, DomainsService, accountId);

async function add(owner: Owner, hostname = `${randomBytes(4).toString('hex')}.example`): Promise<Domain> {
  const { domain } = await domainsOf(owner).addDomain({ hostname });
  if (!domain) throw new Error('the answer has no domain');
  return domain;
}

async function verify(owner: Owner, { id }: Domain): Promise<void> {
  await domainsOf(owner).verifyDomain({ id });
}

const prove = ({ txtName, txtValue }: Domain) => dns.set(txtName, 'TXT', txtValue);
const point = ({ hostname }: Domain) => dns.set(hostname, 'CNAME', 'sign.example');

/** A domain that serves at the gateway. */
async function live(owner: Owner, hostname?: string): Promise<Domain> {
  const domain = await add(owner, hostname);
  prove(domain);
  point(domain);
  await verify(owner, domain);
  await expect.poll(() => ask(domain.hostname), EVENTUALLY).toBe(200);
  return domain;
}

test('one code may be created on a verified, live or failing domain, a batch on a live one, and neither on any other', async () => {
  const owner = await signpost.createAccount();
  const domain = await add(owner);
  const batch = async () =>
    (await call(owner, '/batches', { rows: [{ target_url: TARGET }], domain_id: domain.id })).status;
  expect(await batch()).toBe(400);
  const pending = await call(owner, '/qr-codes', { target_url: TARGET, domain_id: domain.id });
  expect(pending.status).toBe(400);
  expect(((await pending.json()) as { error: string }).error).toContain('domain_id');
  prove(domain);
  await verify(owner, domain);
  expect((await createCode(owner, domain.id)).scan_url).toMatch(`https://${domain.hostname}/r/`);
  expect(await batch()).toBe(400);
  point(domain);
  await verify(owner, domain);
  await createCode(owner, domain.id);
  expect(await batch()).toBe(201);
  dns.set(domain.hostname, 'CNAME');
  await verify(owner, domain);
  await createCode(owner, domain.id);
  expect(await batch()).toBe(400);
  const stranger = await signpost.createAccount();
  expect((await call(stranger, '/qr-codes', { target_url: TARGET, domain_id: domain.id })).status).toBe(400);
  await domainsOf(owner).removeDomain({ id: domain.id });
  expect((await call(owner, '/qr-codes', { target_url: TARGET, domain_id: domain.id })).status).toBe(400);
});

test('a code on a custom domain says so, in its scan URL, its image and its batch; all others are the platform’s', async () => {
  const owner = await signpost.createAccount();
  const domain = await live(owner);
  const code = await createCode(owner, domain.id);
  expect(code).toMatchObject({
    domain_id: domain.id,
    scan_url: `https://${domain.hostname}/r/${code.short_code}`,
  });
  expect(await (await call(owner, `/qr-codes/${code.id}`)).json()).toMatchObject({ data: code });
  const image = PNG.sync.read(Buffer.from(await (await call(owner, `/qr-codes/${code.id}/image`)).arrayBuffer()));
  const read = jsqr.default(new Uint8ClampedArray(image.data), image.width, image.height);
  expect(read?.data).toBe(code.scan_url);
  const staged = await call(owner, '/batches', { rows: [{ target_url: TARGET }], domain_id: domain.id });
  const { data: batch } = (await staged.json()) as { data: { id: string; domain_id: string } };
  expect(batch.domain_id).toBe(domain.id);
  const { data } = (await (await call(owner, `/batches/${batch.id}`)).json()) as { data: { rows: Code[] } };
  expect(data.rows[0]?.scan_url).toBe(`https://${domain.hostname}/r/${data.rows[0]?.short_code}`);
  const plain = await createCode(owner);
  expect(plain).toMatchObject({ domain_id: null, scan_url: `https://sign.example/r/${plain.short_code}` });
  for (const target_url of [
    code.scan_url,
    `${code.scan_url}/?a=1`,
    `http://${domain.hostname}:80/r/${code.short_code}`,
  ]) {
    expect((await call(owner, '/qr-codes', { target_url })).status).toBe(400);
  }
});

test('a scan under a live domain leads to the target of its own codes, and for all others to a page', async () => {
  const [owner, other] = [await signpost.createAccount(), await signpost.createAccount()];
  const [domain, foreign] = [await live(owner), await live(other)];
  const own = await createCode(owner, domain.id);
  const onPlatform = await createCode(owner);
  expect(await get(`/r/${own.short_code}`, domain.hostname)).toMatchObject({ status: 302, location: TARGET });
  expect(await scan(own, `${domain.hostname.toUpperCase()}.:443`)).toBe(302);
  const page = await get(`/r/${own.short_code}`, foreign.hostname);
  expect(page).toMatchObject({ status: 404, body: expect.stringContaining('<!doctype html>') });
  expect(await scan(onPlatform, domain.hostname)).toBe(404);
  expect(await scan(onPlatform, 'sign.example')).toBe(302);
  expect(await scan(own, 'sign.example')).toBe(302);
  expect(await get('/api/v1/openapi', domain.hostname)).toMatchObject({ status: 404, location: undefined });
});

test('a failing domain still serves who comes; its images wait, and it gets no certificate', async () => {
  const owner = await signpost.createAccount();
  const domain = await live(owner);
  const code = await createCode(owner, domain.id);
  const image = () => call(owner, `/qr-codes/${code.id}/image?format=svg`);
  expect((await image()).status).toBe(200);
  dns.set(domain.hostname, 'CNAME', 'elsewhere.example');
  await verify(owner, domain);
  await expect.poll(() => ask(domain.hostname), EVENTUALLY).toBe(404);
  const waiting = await image();
  expect(waiting.status).toBe(503);
  expect(Number(waiting.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(await scan(code, domain.hostname)).toBe(302);
  expect(await scan(await createCode(owner), domain.hostname)).toBe(404);
  point(domain);
  await verify(owner, domain);
  await expect.poll(() => ask(domain.hostname), EVENTUALLY).toBe(200);
  expect((await image()).status).toBe(200);
});

test('a domain that is verified serves its own codes alone before it is live, a pending one counts as the platform’s', async () => {
  const [owner, other] = [await signpost.createAccount(), await signpost.createAccount()];
  const domain = await add(owner);
  const foreign = await createCode(other);
  expect(await scan(foreign, domain.hostname)).toBe(302);
  prove(domain);
  await verify(owner, domain);
  const own = await createCode(owner, domain.id);
  await expect.poll(() => scan(foreign, domain.hostname), EVENTUALLY).toBe(404);
  expect(await scan(own, domain.hostname)).toBe(302);
  expect(await ask(domain.hostname)).toBe(404);
  // Never live, and still nobody else's code appears under it.
  await domainsOf(owner).removeDomain({ id: domain.id });
  const [last] = [await live(owner)];
  await expect.poll(() => ask(last.hostname), EVENTUALLY).toBe(200);
  expect(await scan(foreign, domain.hostname)).toBe(404);
  expect(await scan(own, domain.hostname)).toBe(302);
});

test('nobody claims a hostname, or the platform’s own, by adding it', async () => {
  const [owner, other] = [await signpost.createAccount(), await signpost.createAccount()];
  const code = await createCode(owner);
  await expect(domainsOf(other).addDomain({ hostname: 'sign.example' })).rejects.toThrow('the platform itself');
  const domain = await add(other);
  await domainsOf(other).removeDomain({ id: domain.id });
  await live(other);
  for (const host of ['sign.example', domain.hostname]) expect(await scan(code, host)).toBe(302);
});

test('the domain of an account that was closed serves no other account’s codes', async () => {
  const [owner, other] = [await signpost.createAccount(), await signpost.createAccount()];
  const domain = await live(owner);
  const [own, foreign] = [await createCode(owner, domain.id), await createCode(other)];
  await internal(signpost, AccountsService, owner.accountId).closeAccount({});
  await expect.poll(() => ask(domain.hostname), EVENTUALLY).toBe(404);
  expect(await scan(foreign, domain.hostname)).toBe(404);
  await expect.poll(() => scan(own, domain.hostname), EVENTUALLY).toBe(410);
});

test('a removed domain serves what was printed on it and nothing else, and is the same when it is added anew', async () => {
  const owner = await signpost.createAccount();
  const domain = await live(owner);
  const code = await createCode(owner, domain.id);
  const onPlatform = await createCode(owner);
  const image = async () => (await call(owner, `/qr-codes/${code.id}/image?format=svg`)).status;
  await domainsOf(owner).removeDomain({ id: domain.id });
  await expect.poll(() => ask(domain.hostname), EVENTUALLY).toBe(404);
  expect(await scan(code, domain.hostname)).toBe(302);
  expect(await scan(onPlatform, domain.hostname)).toBe(404);
  expect(await get('/api/v1/openapi', domain.hostname)).toMatchObject({ status: 404, location: undefined });
  expect(await image()).toBe(503);
  for (const target_url of [code.scan_url, `http://${domain.hostname}/r/${onPlatform.short_code}`]) {
    expect((await call(owner, '/qr-codes', { target_url })).status).toBe(400);
  }
  await live(owner, domain.hostname);
  expect(await scan(code, domain.hostname)).toBe(302);
  expect(await scan(onPlatform, domain.hostname)).toBe(404);
  expect(await image()).toBe(200);
});

test('codes of the account that had a domain before are on another account’s domain', async () => {
  const [before, after] = [await signpost.createAccount(), await signpost.createAccount()];
  const domain = await live(before);
  const [old, other] = [await createCode(before, domain.id), await createCode(before, domain.id)];
  expect(await scan(old, domain.hostname)).toBe(302);
  await domainsOf(before).removeDomain({ id: domain.id });
  const taken = await live(after, domain.hostname);
  const own = await createCode(after, taken.id);
  expect(await scan(own, domain.hostname)).toBe(302);
  // One that the gateway knows, and one that it has to look up.
  for (const code of [old, other]) {
    expect(await scan(code, domain.hostname)).toBe(404);
    expect(await scan(code, 'sign.example')).toBe(302);
    expect((await call(before, `/qr-codes/${code.id}/image?format=svg`)).status).toBe(503);
  }
});

test('certificates: only live domains may have one', async () => {
  const owner = await signpost.createAccount();
  const domain = await add(owner);
  expect(await ask(domain.hostname)).toBe(404);
  prove(domain);
  await verify(owner, domain);
  expect(await ask(domain.hostname)).toBe(404);
  point(domain);
  await verify(owner, domain);
  await expect.poll(() => ask(domain.hostname), EVENTUALLY).toBe(200);
  expect(await ask(`${domain.hostname.toUpperCase()}.`)).toBe(200);
  for (const hostname of ['', 'sign.example', 'localhost', `x.${domain.hostname}`, '%00', 'x'.repeat(5_000)]) {
    expect(await ask(hostname)).toBe(404);
  }
  expect((await get('/tls/ask')).status).toBe(404);
});
