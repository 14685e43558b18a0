import { request as requestOverHttp } from 'node:http';
import { request as requestOverTls } from 'node:https';
import { configured } from '../common/runtime/read-configured-file.ts';

/** What gateways, the dashboard and ports of metrics answer to everybody. */
const READY = { method: 'GET', path: '/readyz', headers: {}, body: '', serves: () => true };

/**
 * The health check of a container: `node deploy/health.ts core`, `… worker`, `… gateway` or `… dashboard`. Exits with 0
 * if the program in this container serves, else with 1. A check takes 0.1 s of CPU time, most of it Node’s start.
 */
const CHECKS = {
  // It may require a token for health as for everything else.
  core: {
    port: configured(process.env, 'CORE_PORT') ?? 8081,
    method: 'POST',
    path: '/grpc.health.v1.Health/Check',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${configured(process.env, 'SERVICE_TOKEN')?.split(',')[0]}`,
    },
    body: '{}',
    serves: (body: string) => body.includes('"SERVING"'),
  },
  // A core without the role `rpc` listens on no port but that of its metrics, which must be set.
  worker: { ...READY, port: configured(process.env, 'METRICS_PORT') },
  gateway: { ...READY, port: configured(process.env, 'PORT') ?? 8080 },
  dashboard: { ...READY, port: configured(process.env, 'DASHBOARD_PORT') ?? 8090 },
};

const program = process.argv[2] as keyof typeof CHECKS;
const check = CHECKS[program];
const { port, method, path, headers } = check;
const isOverTls = program === 'core' && configured(process.env, 'TLS_CERT') !== undefined;
const request = isOverTls ? requestOverTls : requestOverHttp;
// The certificate names the core as its callers know it, and not the loopback address.
request({ host: '127.0.0.1', port, method, path, headers, rejectUnauthorized: false, timeout: 4_000 })
  .once('response', (response) => {
    let body = '';
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => {
      body += chunk;
    });
    response.once('end', () => process.exit(response.statusCode === 200 && check.serves(body) ? 0 : 1));
  })
  .once('timeout', () => process.exit(1))
  .once('error', () => process.exit(1))
  .end(check.body);
