import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { freePort, LOOPBACK } from '../../../local/free-port.ts';
import { httpText } from '../rest-client.ts';
import { expectStatus, HOST, LINKS, type Peer, type PeerOptions, TARGET } from './peer.ts';
import { startServer } from './server.ts';

/** How to install chhoto-url, and where the benchmark finds it. */
export const CHHOTO_URL_SETUP = `chhoto-url (Rust, SQLite) is not measured. To set it up (with Rust 1.95,
add --ignore-rust-version):
  git clone --branch 7.5.0 --depth 1 https://github.com/SinTan1729/chhoto-url /tmp/peers/chhoto-url
  cargo build --release --locked --manifest-path /tmp/peers/chhoto-url/backend/Cargo.toml
  export CHHOTO_URL_DIR=/tmp/peers/chhoto-url`;

/** Links of a request that fills the instance: its bodies may have 256 KiB. */
const LINKS_AT_ONCE = 2_000;

const LIST = '/api/all?page_no=1&page_size=25';

/**
 * Starts chhoto-url, built in `CHHOTO_URL_DIR`, with a database of its own and links; undefined where it is not
 * installed. Settings are those that its documentation recommends for production: WAL, durable commits (the default),
 * random codes of 16 characters. Redirects are temporary, as those of the others.
 */
export async function startChhotoUrl({ folder, running }: PeerOptions): Promise<Peer | undefined> {
  const { CHHOTO_URL_DIR: cwd } = process.env;
  if (!cwd) return undefined;
  const port = await freePort();
  const data = join(folder, 'chhoto-url');
  await mkdir(data);
  const apiKey = randomBytes(48).toString('base64url');
  const env = {
    CHHOTO_DB_URL: join(data, 'urls.sqlite'),
    CHHOTO_SQLITE_USE_WAL_MODE: 'True',
    CHHOTO_LISTEN_ADDRESS: LOOPBACK,
    CHHOTO_LISTEN_PORT: String(port),
    CHHOTO_PASSWORD: randomBytes(24).toString('base64url'),
    CHHOTO_API_KEY: apiKey,
    CHHOTO_SLUG_STYLE: 'UID',
    CHHOTO_SLUG_LENGTH: '16',
    CHHOTO_REDIRECT_METHOD: 'TEMPORARY',
  };
  const command = join(cwd, 'backend/target/release/chhoto-url');
  const pid = await startServer({ command, cwd, env, port, log: join(folder, 'chhoto-url.log'), running });
  const api = { port, pid, behind: [] };
  const headers = { Host: HOST, 'X-API-Key': apiKey };
  const targets = await seed(`http://${LOOPBACK}:${port}/api/new`, apiKey);
  const database = new DatabaseSync(env.CHHOTO_DB_URL, { readOnly: true });
  running.defer(() => database.close());
  const number = async (sql: string) => Number(database.prepare(sql).get()?.n);
  return {
    name: 'chhoto-url',
    api,
    usesPostgres: false,
    create: (n, client) =>
      expectStatus(client, httpText('POST', '/api/new', headers, JSON.stringify({ longlink: TARGET + n })), 200),
    list: (_n, client) => expectStatus(client, httpText('GET', LIST, headers), 200),
    async listed() {
      const response = await fetch(`http://${LOOPBACK}:${port}${LIST}`, { headers: { 'X-API-Key': apiKey } });
      return (await response.json()) as unknown[];
    },
    maxRequests: Number.POSITIVE_INFINITY,
    beforeRound: async () => undefined,
    settled: async () => undefined,
    links: () => number('select count(*) as n from urls'),
    redirects: {
      prefix: '/',
      status: 307,
      target: TARGET,
      targets,
      servers: new Map([['chhoto-url', api]]),
      recorded: () => number('select sum(hits) as n from urls'),
    },
  };
}

/** Creates links over the API; gives the targets of their codes. */
async function seed(url: string, apiKey: string): Promise<Map<string, string>> {
  const targets = new Map<string, string>();
  while (targets.size < LINKS) targets.set(randomBytes(8).toString('hex'), TARGET + targets.size);
  const links = [...targets].map(([shortlink, longlink]) => ({ shortlink, longlink }));
  for (let at = 0; at < links.length; at += LINKS_AT_ONCE) {
    const body = JSON.stringify(links.slice(at, at + LINKS_AT_ONCE));
    const response = await fetch(url, { method: 'POST', headers: { 'X-API-Key': apiKey }, body });
    const answers = (await response.json()) as { success: boolean }[];
    if (!answers.every(({ success }) => success)) throw new Error('chhoto-url did not create all links');
  }
  return targets;
}
