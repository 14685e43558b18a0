import type { ServerResponse } from 'node:http';
import type { RouteTable } from '../routes/route-table.ts';

/** Where a proxy asks whether it may get a certificate for a host. */
export const ASK_PATH = '/tls/ask?';

/**
 * `GET /tls/ask?domain=…`, as Caddy's on-demand TLS asks: 200 for a live custom domain, 404 for any other host, from
 * this machine's disk. Without it anybody who points a name at the proxy would have it get certificates.
 */
export function answerAsk(url: string, table: RouteTable, response: ServerResponse): void {
  const asked = new URLSearchParams(url.slice(ASK_PATH.length)).get('domain') ?? '';
  const domain = table.customDomain(asked.toLowerCase().replace(/\.$/, ''));
  const status = domain && !domain.failing && !domain.removed ? 200 : 404;
  response.writeHead(status, { 'content-length': '0', 'cache-control': 'no-store' }).end();
}
