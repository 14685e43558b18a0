import { createServer, type Server, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ScopeMetrics } from '@opentelemetry/sdk-metrics';
import type { Logger } from 'pino';
import { logAcceptErrors } from '../http/accept-errors.ts';
import { limitPipelining } from '../http/http-limits.ts';
import { replaceIdle } from '../http/replace-idle.ts';
import { OperatorError } from '../runtime/operator-error.ts';
import { throttledReport } from '../runtime/throttled-report.ts';

/** What a process says of itself on `METRICS_PORT`. */
export interface Observed {
  collect(): Promise<readonly ScopeMetrics[]>;
  /** Resolves with why the process is not ready, as a sentence; undefined if it is. */
  unready(): Promise<string | undefined>;
}

export interface ServeOptions extends Observed {
  readonly host: string;
  /** Undefined: nothing is served. */
  readonly port: number | undefined;
  readonly logger: Logger;
}

/**
 * Timeouts of a request's head, of a whole request, and of a connection without traffic, in ms; scrapers need far less.
 */
const HEAD_MS = 5_000;
const REQUEST_MS = 10_000;
const IDLE_MS = 20_000;
/** The most connections; a further one replaces an idle one. */
const MAX_CONNECTIONS = 32;
/** The shortest time between two log lines about failed collections, in ms. */
const REPORT_MS = 60_000;
/** How often a port in use is tried again, in ms. */
const RETRY_MS = 1_000;

/**
 * Serves `/metrics`, `/healthz` (the process is alive) and `/readyz` until the result is disposed of. Requests that
 * arrive together share one collection. If the port is in use, for example by the process that this one replaces, the
 * process starts nevertheless and takes the port once it is free.
 */
export async function serveObserved({ host, port, logger, ...observed }: ServeOptions): Promise<AsyncDisposable> {
  if (port === undefined) return { [Symbol.asyncDispose]: async () => undefined };
  const server = createServer({
    headersTimeout: HEAD_MS,
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: IDLE_MS,
    connectionsCheckingInterval: HEAD_MS,
  });
  server.setTimeout(IDLE_MS, (socket) => socket.destroy());
  logAcceptErrors(server, logger);
  const answer = answering(observed, logger);
  server.on('request', ({ method, url = '' }, response) => {
    const path = url.split('?', 1)[0] ?? '';
    if (method === 'GET' || method === 'HEAD') answer(path, response);
    else send(response.setHeader('allow', 'GET, HEAD'), 405, 'Only GET and HEAD are supported.');
  });
  limitPipelining(server);
  const connections = replaceIdle(server, { most: MAX_CONNECTIONS });
  server.prependListener('connection', (socket) => {
    if (connections.admit(socket)) socket.on('close', () => connections.closed(socket));
    else socket.resetAndDestroy();
  });
  const stopping = new AbortController();
  const failure = await tryToListen(server, host, port);
  if (failure !== undefined && failure !== 'EADDRINUSE') {
    throw new OperatorError(`METRICS_PORT ${port} can't be listened on: ${failure}.`);
  }
  if (failure !== undefined) {
    logger.warn({ port }, 'METRICS_PORT is in use; metrics are served once it is free');
    void retry(server, host, port, stopping.signal);
  }
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Resolves with the code of the error if it fails. */
function tryToListen(server: Server, host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const onError = ({ code = 'unknown' }: NodeJS.ErrnoException) => {
      server.off('listening', onListening);
      resolve(code);
    };
    const onListening = () => {
      server.off('error', onError);
      resolve(undefined);
    };
    server.once('error', onError).once('listening', onListening).listen(port, host);
  });
}

async function retry(server: Server, host: string, port: number, signal: AbortSignal): Promise<void> {
  for (;;) {
    await sleep(RETRY_MS, undefined, { signal, ref: false }).catch(() => undefined);
    if (signal.aborted || (await tryToListen(server, host, port)) === undefined) return;
  }
}

function answering({ collect, unready }: Observed, logger: Logger): (path: string, response: ServerResponse) => void {
  let running: Promise<string> | undefined;
  const report = throttledReport(REPORT_MS, (failures, error: unknown) => {
    logger.warn({ failures, err: error }, 'metrics or readiness could not be determined');
  });

  async function text(): Promise<string> {
    const { prometheusText } = await import('./prometheus.ts');
    return prometheusText(await collect());
  }

  async function metrics(response: ServerResponse): Promise<void> {
    running ??= text().finally(() => {
      running = undefined;
    });
    send(response, 200, await running, 'text/plain; version=0.0.4; charset=utf-8');
  }

  async function readiness(response: ServerResponse): Promise<void> {
    const reason = await unready();
    send(response, reason === undefined ? 200 : 503, reason ?? 'ready');
  }

  return (path, response) => {
    const answered =
      path === '/metrics'
        ? metrics(response)
        : path === '/readyz'
          ? readiness(response)
          : path === '/healthz'
            ? send(response, 200, 'alive')
            : send(response, 404, 'There are /metrics, /healthz and /readyz.');
    Promise.resolve(answered).catch((error: unknown) => {
      report(1, error);
      if (response.headersSent) return;
      if (path === '/readyz') send(response, 503, 'Readiness could not be determined.');
      else send(response, 500, 'Metrics could not be collected.');
    });
  };
}

function send(response: ServerResponse, status: number, body: string, type = 'text/plain; charset=utf-8'): void {
  const headers = { 'content-type': type, 'content-length': Buffer.byteLength(body), 'cache-control': 'no-store' };
  response.writeHead(status, headers).end(response.req.method === 'HEAD' ? undefined : body);
}
