import { spawnSync } from 'node:child_process';
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { KEEP_ALIVE_MS } from '../common/http/http-limits.ts';
import { freePort, LOOPBACK } from '../local/free-port.ts';
import { DomainsService } from '../proto/gen/signpost/domains/v1/domains_pb.ts';
import { internal } from './contract/internal.ts';
import { startCaddy } from './harness/caddy.ts';
import { startDns } from './harness/dns.ts';
import { startSignpost } from './harness/processes.ts';

/** The configuration of docs/domains.md in a real Caddy, which here is its own certificate authority. */

const EVENTUALLY = { timeout: 20_000, interval: 100 };
const hasCaddy = spawnSync('caddy', ['version']).status === 0;

/** A route in Caddy's own format: the hosts that it matches, and, somewhere in it, where it sends requests. */
interface AdaptedRoute {
  readonly match?: readonly { readonly host?: readonly string[] }[];
}

interface AdaptedServer {
  readonly listen: readonly string[];
  readonly routes: readonly AdaptedRoute[];
}

/** The servers of a Caddyfile, as Caddy understands it. */
async function serversOf(caddyfile: string): Promise<readonly AdaptedServer[]> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'signpost-caddyfile-'));
  const path = join(folder.path, 'Caddyfile');
  await writeFile(path, caddyfile);
  const env = {
    ...process.env,
    ACME_EMAIL: 'ops@sign.example',
    PUBLIC_URL: 'https://sign.example',
    DASHBOARD_URL: 'https://dashboard.sign.example',
  };
  const args = ['adapt', '--config', path, '--adapter', 'caddyfile'];
  const { stdout } = spawnSync('caddy', args, { env, encoding: 'utf8' });
  const servers: Record<string, AdaptedServer> = JSON.parse(stdout).apps.http.servers;
  return Object.values(servers);
}

test.skipIf(!hasCaddy && !process.env.CI)(
  'deploy/caddy/Caddyfile sends only the dashboard’s host to the dashboard',
  async () => {
    const routes = (await serversOf(await readFile('deploy/caddy/Caddyfile', 'utf8'))).flatMap(({ routes }) => routes);
    const hosts = routes
      .filter((route) => JSON.stringify(route).includes('"dashboard:8090"'))
      .flatMap(({ match }) => match?.flatMap(({ host }) => host ?? []));
    expect(hosts).toEqual(['dashboard.sign.example']);
  },
);

test.skipIf(!hasCaddy && !process.env.CI).each(['deploy/caddy/Caddyfile', 'docs/domains.md'])(
  'Caddy closes idle connections before their other ends do, everywhere in %s',
  async (file) => {
    const text = await readFile(file, 'utf8');
    const documented = [...text.matchAll(/```caddyfile\n(.*?)```/gs)].map(([, caddyfile = '']) => caddyfile);
    for (const caddyfile of documented.length > 0 ? documented : [text]) {
      const adapted = JSON.stringify(await serversOf(caddyfile));
      const proxies = adapted.match(/"handler":"reverse_proxy"/g) ?? [];
      const timeouts = [...adapted.matchAll(/"keep_alive":\{"idle_timeout":(\d+)\}/g)].map(
        ([, ns]) => Number(ns) / 1e6,
      );
      expect(timeouts).toHaveLength(proxies.length);
      expect(Math.max(...timeouts)).toBeLessThan(KEEP_ALIVE_MS);
    }
  },
);

test.skipIf(!hasCaddy && !process.env.CI).each(['deploy/caddy/Caddyfile', 'docs/domains.md'])(
  'the listener of %s for `ask`, which passes on every path, answers this machine only',
  async (file) => {
    const text = await readFile(file, 'utf8');
    const [, snippet] = /```caddyfile\n(http:.*?)```/s.exec(text) ?? [];
    const listeners = (await serversOf(snippet ?? text)).flatMap(({ listen }) => listen);
    expect(listeners.filter((address) => address.endsWith(':5555'))).toEqual([`${LOOPBACK}:5555`]);
  },
);

describe.skipIf(!hasCaddy && !process.env.CI)('Caddy (apt-get install caddy), as the documentation sets it up', () => {
  let httpsPort: number;
  let httpPort: number;
  /** Short codes: one on the live domain, one on the platform's host. */
  let own: string;
  let platforms: string;

  beforeAll(async () => {
    const dns = await startDns();
    const signpost = await startSignpost({
      env: { PUBLIC_URL: 'https://sign.example', DNS_RESOLVERS: dns.address, TRUST_PROXY: LOOPBACK },
    });
    const { accountId, apiKey } = await signpost.createAccount();
    const domains = internal(signpost, DomainsService, accountId);
    const { domain } = await domains.addDomain({ hostname: 'menu.example' });
    dns.set('_signpost.menu.example', 'TXT', domain?.txtValue ?? '');
    dns.set('menu.example', 'CNAME', 'sign.example');
    await domains.verifyDomain({ id: domain?.id ?? '' });
    const create = async (domainId?: string) => {
      const body = JSON.stringify({ target_url: 'https://example.com/', domain_id: domainId });
      const headers = { authorization: `Bearer ${apiKey}` };
      const created = await fetch(`${signpost.url}/api/v1/qr-codes`, { method: 'POST', headers, body });
      return ((await created.json()) as { data: { short_code: string } }).data.short_code;
    };
    own = await create(domain?.id);
    platforms = await create();
    const ask = async () => expect((await fetch(`${signpost.url}/tls/ask?domain=menu.example`)).status).toBe(200);
    await vi.waitFor(ask, EVENTUALLY);

    [httpPort, httpsPort] = [await freePort(), await freePort()];
    const documented = /```caddyfile\n(.*?)```/s.exec(await readFile('docs/domains.md', 'utf8'))?.[1] ?? '';
    const settings = `local_certs\n\tskip_install_trust\n\tadmin off\n\thttp_port ${httpPort}\n\thttps_port ${httpsPort}`;
    const adapted = documented
      .replace('email ops@sign.example', settings)
      .replaceAll('127.0.0.1:8080', new URL(signpost.url).host);
    await startCaddy(adapted);
    await vi.waitFor(() => get('sign.example', '/'), EVENTUALLY);
  });

  interface Answer {
    readonly status: number | undefined;
    readonly location: string | undefined;
  }

  /** Over TLS; rejects where no certificate is to be had. */
  function get(host: string, path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const options = { host: LOOPBACK, port: httpsPort, servername: host, path, rejectUnauthorized: false };
      httpsRequest({ ...options, headers: { ...headers, host } }, (response) => {
        resolve({ status: response.statusCode, location: response.headers.location });
        response.resume();
      })
        .once('error', reject)
        .end();
    });
  }

  test('a live domain gets a certificate with the first visitor, whose code leads to its target', async () => {
    expect(await get('menu.example', `/r/${own}`)).toEqual({ status: 302, location: 'https://example.com/' });
  });

  test('no other name gets one', async () => {
    for (const host of ['unheard-of.example', 'x.menu.example', 'localhost']) {
      await expect(get(host, `/r/${own}`)).rejects.toThrow(/alert|reset|EPROTO/i);
    }
  });

  test('the platform’s host serves all codes and the API, and keeps what is internal to itself', async () => {
    for (const code of [own, platforms]) expect((await get('sign.example', `/r/${code}`)).status).toBe(302);
    expect((await get('sign.example', '/api/v1/qr-codes')).status).toBe(401);
    for (const path of ['/tls/ask?domain=menu.example', '/healthz', '/readyz']) {
      expect((await get('sign.example', path)).status).toBe(404);
    }
  });

  test('the host is the one that was asked for, whatever a visitor’s headers say', async () => {
    for (const headers of [{ forwarded: 'host=sign.example' }, { 'x-forwarded-host': 'sign.example' }]) {
      expect((await get('menu.example', `/r/${platforms}`, headers)).status).toBe(404);
    }
  });

  test('plain HTTP is led to https', async () => {
    const location = await new Promise((resolve, reject) => {
      httpRequest(
        { host: LOOPBACK, port: httpPort, path: `/r/${own}`, headers: { host: 'menu.example' } },
        (answer) => {
          answer.resume();
          resolve(answer.headers.location);
        },
      )
        .once('error', reject)
        .end();
    });
    expect(location).toMatch(new RegExp(`^https://menu\\.example(:\\d+)?/r/${own}$`));
  });
});
