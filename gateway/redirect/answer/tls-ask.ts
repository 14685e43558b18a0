import type { ServerResponse } from 'node:http';
import type { RouteTable } from '../routes/route-table.ts';

/** The endpoint where a proxy checks whether it may obtain a certificate for a host. */
export const TLS_ASK_PATH = '/tls/ask';

/**
 * `GET /tls/ask?domain=…`, the `ask` endpoint of Caddy's on-demand TLS: 200 for a live custom domain, 404 for any other
 * host, read from local disk. Without it, anyone who points a name at the proxy could make it request certificates.
 */
export function answerTlsAsk(url: string, table: RouteTable, response: ServerResponse): void {
  const hostname = new URLSearchParams(url.slice(TLS_ASK_PATH.length)).get('domain') ?? '';
  const domain = table.customDomain(hostname.toLowerCase().replace(/\.$/, ''));
  const status = domain && !domain.failing && !domain.removed ? 200 : 404;
  response.writeHead(status, { 'content-length': '0', 'cache-control': 'no-store' }).end();
}
