import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, isIP, Server as NetServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { exitOnFatalErrors } from '../src/contract/fatal-errors.ts';
import { openLogger } from '../src/contract/logger.ts';
import { readVariables } from '../src/contract/variables.ts';
import { GATEWAY_VARIABLES, type GatewayConfig } from './config.ts';
import { connectCore } from './core.ts';
import { answerAlive, readiness } from './health.ts';
import { Sentence } from './keep-process.ts';
import { measureWorker } from './metrics.ts';
import { type GatewayState, onOrder, STATUS_MS, tell, toldToStop } from './processes.ts';
import { ASK_PATH, answerAsk } from './redirect/answer-ask.ts';
import { answerScans } from './redirect/answer-scans.ts';
import { type FastLane, openFastLane } from './redirect/fast-lane.ts';
import { httpLane } from './redirect/http-lane.ts';
import { openRouteTable } from './redirect/route-table.ts';
import { openSpool } from './redirect/spool.ts';
import { lookUpUnknownCodes } from './redirect/unknown-codes.ts';
import { createApi } from './rest/api.ts';
import { answerClientError, answerUnreadable, answerWithoutHost, hasNoHost } from './rest/client-error.ts';

/** How long connections are given for a last answer when it is asked to stop, in ms. */
const DRAIN_MS = 500;
/** How long answers in hand may take when it is asked to stop, scans that no disk takes after them, and the rest, in ms. */
const GRACE_MS = 10_000;
const SPOOL_MS = 2_000;
const CLOSE_MS = 2_000;

/** How long the headers of a request may take, in ms, and how often that is looked after. */
const HEADERS_MS = 15_000;
const LOOK_MS = 5_000;

/** How long a connection may be idle, in ms: longer than proxies keep theirs, so that it is they who end them. */
const KEEP_ALIVE_MS = 75_000;

/** Answers requests: puts the parts together, and takes them apart in the opposite order. */
async function work(number: number): Promise<void> {
  const config = readVariables(GATEWAY_VARIABLES, process.env);
  const logger = openLogger(config.LOG_LEVEL, { process: 'gateway', part: `worker ${number}` });
  exitOnFatalErrors(logger);
  const stopped = toldToStop(logger);
  await using running = new AsyncDisposableStack();
  running.defer(() => logger.info('the worker has stopped'));
  const table = openRouteTable(join(config.DATA_DIR, 'routes'), logger);
  running.defer(() => table.close());
  const unknown = lookUpUnknownCodes(config.DATABASE_URL, logger);
  running.defer(() => unknown.close());
  let offered = { offer: '', taken: () => {} };
  const spool = openSpool({
    folder: join(config.DATA_DIR, 'spool', String(number)),
    logger,
    offer(frames, taken) {
      offered = { offer: randomUUID(), taken };
      tell({ type: 'held', offer: offered.offer, frames });
    },
  });
  running.defer(() => spool.close(SPOOL_MS));
  const core = connectCore({
    address: config.CORE_ADDRESS.join(','),
    timeoutMs: config.CORE_TIMEOUT_MS,
    ca: config.CORE_CA === undefined ? undefined : readAuthority(config.CORE_CA, config.CORE_ADDRESS),
  });
  running.defer(() => core.close());
  const publicUrl = config.PUBLIC_URL ?? `http://localhost:${config.PORT}`;
  const api = await createApi({ core, logger, publicUrl, onRoute: table.applySoon });
  running.defer(() => api.close());
  const scans = answerScans({
    table,
    unknown,
    spool,
    trustedProxies: config.TRUST_PROXY,
    countryHeader: config.COUNTRY_HEADER,
    logger,
  });

  let state: GatewayState = { carrier: undefined, workers: [] };
  onOrder((order) => {
    if (order.type === 'state') ({ state } = order);
    else if (order.type === 'taken' && order.offer === offered.offer) offered.taken();
  });
  const status = () => ({ answered: scans.answered(), spool: spool.status() });
  measureWorker(number, status);
  const telling = setInterval(() => tell({ type: 'status', worker: status() }), STATUS_MS);
  running.defer(() => clearInterval(telling));

  const lane = httpLane(scans);
  let isStopping = false;
  const ready = readiness({ spool, core, state: () => state });
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    if (isStopping) response.setHeader('connection', 'close');
    if (hasNoHost(request)) return answerWithoutHost(request, response);
    if (lane.concerns(request)) return lane.handle(request, response);
    if (request.url === '/healthz') return answerAlive(response);
    if (request.url === '/readyz') return ready(response);
    if (request.url?.startsWith(ASK_PATH)) return answerAsk(request.url, table, response);
    api.handle(request, response);
  };
  // Node's own answers to these have no body that a client could read.
  const limits = { headersTimeout: HEADERS_MS, connectionsCheckingInterval: LOOK_MS, keepAliveTimeout: KEEP_ALIVE_MS };
  const server = createServer({ ...limits, requireHostHeader: false }, answer);
  server.on('checkExpectation', answer);
  server.on('connect', (_request, socket) => answerUnreadable(socket));
  server.on('clientError', answerClientError);
  const fast = openFastLane(server, scans, config.COUNTRY_HEADER);
  await listen(server, config);
  const closed = Promise.withResolvers<void>();
  /** `server.close()` would also close connections whose next request is under way. */
  const closePort = () => {
    if (server.listening) Reflect.apply(NetServer.prototype.close, server, [() => closed.resolve()]);
    tell({ type: 'closed' });
  };
  onOrder(({ type }) => {
    if (type === 'close') closePort();
  });
  running.defer(() => {
    isStopping = true;
    closePort();
    return stop(server, fast, closed.promise);
  });
  tell({ type: 'ready', port: (server.address() as AddressInfo).port });
  await stopped;
  setTimeout(
    () => {
      logger.error('the worker has not stopped in time and ends as it is');
      process.exit();
    },
    GRACE_MS + SPOOL_MS + CLOSE_MS,
  );
}

function readAuthority(path: string, addresses: readonly string[]): Buffer {
  // TLS knows servers by their names, and grpc-js can't ask for an address.
  if (addresses.some((address) => isIP(address.replace(/:\d+$/, '').replace(/^\[|\]$/g, '')) !== 0)) {
    throw new Sentence('With CORE_CA, CORE_ADDRESS must name the cores as their certificates do: no IP addresses.');
  }
  try {
    return readFileSync(path);
  } catch (error) {
    throw new Sentence(`CORE_CA ${path} can't be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}

function listen(server: Server, { PORT, LISTEN_HOST }: GatewayConfig): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', ({ code }: NodeJS.ErrnoException) => {
      reject(new Sentence(`PORT ${PORT} can't be listened on: ${code === 'EADDRINUSE' ? 'it is taken' : code}.`));
    });
    server.listen(PORT, LISTEN_HOST, resolve);
  });
}

/**
 * Lets each connection have a last answer, as one that is closed while its next request is under way loses that one.
 * Then ends those that ask for nothing. `closed`: there are none any more.
 */
async function stop(server: Server, fast: FastLane, closed: Promise<void>): Promise<void> {
  fast.drain();
  await Promise.race([closed, sleep(DRAIN_MS)]);
  server.closeIdleConnections();
  fast.end();
  const timer = setTimeout(() => {
    server.closeAllConnections();
    fast.destroy();
  }, GRACE_MS);
  await closed;
  clearTimeout(timer);
}

try {
  await work(Number(process.argv[2]));
} catch (error) {
  if (!(error instanceof Sentence)) throw error;
  await tell({ type: 'failed', sentence: error.message });
}
// Connections that a library keeps must not keep the process.
process.exit();
