import { accessSync, constants, mkdirSync, readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, isIP } from 'node:net';
import { join } from 'node:path';
import { pino } from 'pino';
import { readVariables, WrongVariables } from '../src/contract/variables.ts';
import { openLog } from '../src/events/log/open.ts';
import { GATEWAY_VARIABLES, type GatewayConfig } from './config.ts';
import { connectCore } from './core.ts';
import { answerAlive, readiness } from './health.ts';
import { ASK_PATH, answerAsk } from './redirect/answer-ask.ts';
import { answerScans } from './redirect/answer-scans.ts';
import { type FastLane, openFastLane } from './redirect/fast-lane.ts';
import { followRoutes } from './redirect/follow-routes.ts';
import { httpLane } from './redirect/http-lane.ts';
import { openRouteTable } from './redirect/route-table.ts';
import { shipScans } from './redirect/ship-scans.ts';
import { openSpool } from './redirect/spool.ts';
import { lookUpUnknownCodes } from './redirect/unknown-codes.ts';
import { createApi } from './rest/api.ts';
import { answerClientError, answerUnreadable, answerWithoutHost, hasNoHost } from './rest/client-error.ts';

/** How long answers in hand may take when the gateway is asked to stop, shipping after them, and the rest, in ms. */
const GRACE_MS = 10_000;
const SHIP_MS = 3_000;
const CLOSE_MS = 5_000;

/** How long a connection may be idle, in ms: longer than proxies keep theirs, so that it is they who end them. */
const KEEP_ALIVE_MS = 75_000;

/** A start that can't succeed, as a sentence for the person who started it. */
class Sentence extends Error {}

/** Puts the parts together, and takes them apart in the opposite order; nothing else is decided here. */
async function main(config: GatewayConfig): Promise<void> {
  const logger = pino({ level: config.LOG_LEVEL, base: { process: 'gateway' } });
  expectWritable(config.DATA_DIR);
  await using running = new AsyncDisposableStack();
  const log = openLog({
    kafkaBrokers: config.KAFKA_BROKERS,
    databaseUrl: config.DATABASE_URL,
    clientId: 'signpost-gateway',
    logger,
  });
  running.defer(() => log.close());
  const table = openRouteTable(join(config.DATA_DIR, 'routes'), logger);
  running.defer(() => table.close());
  const follower = followRoutes({ log, table, logger });
  running.defer(() => follower.stop());
  const unknown = lookUpUnknownCodes(config.DATABASE_URL, logger);
  running.defer(() => unknown.close());
  const spool = openSpool(join(config.DATA_DIR, 'spool'), logger);
  running.defer(() => spool.close());
  const shipper = shipScans({ spool, log, logger });
  running.defer(() => shipper.stop(SHIP_MS));
  const core = connectCore({
    address: config.CORE_ADDRESS.join(','),
    timeoutMs: config.CORE_TIMEOUT_MS,
    ca: config.CORE_CA === undefined ? undefined : readAuthority(config.CORE_CA, config.CORE_ADDRESS),
  });
  running.defer(() => core.close());
  const publicUrl = config.PUBLIC_URL ?? `http://localhost:${config.PORT}`;
  const api = await createApi({ core, logger, publicUrl, onRoute: table.apply });
  running.defer(() => api.close());
  const scans = answerScans({
    table,
    unknown,
    spool,
    trustedProxies: config.TRUST_PROXY,
    countryHeader: config.COUNTRY_HEADER,
    logger,
  });

  const lane = httpLane(scans);
  const ready = readiness({ spool, shipper, follower, core, log });
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    // Who is asked to stop does not wait for the next request.
    if (!server.listening) response.setHeader('connection', 'close');
    if (hasNoHost(request)) return answerWithoutHost(request, response);
    if (lane.concerns(request)) return lane.handle(request, response);
    if (request.url === '/healthz') return answerAlive(response);
    if (request.url === '/readyz') return ready(response);
    if (request.url?.startsWith(ASK_PATH)) return answerAsk(request.url, table, response);
    api.handle(request, response);
  };
  // Node's own answers to these have no body that a client could read.
  const server = createServer({ requireHostHeader: false }, answer);
  server.on('checkExpectation', answer);
  server.on('connect', (_request, socket) => answerUnreadable(socket));
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.on('clientError', answerClientError);
  const fast = openFastLane(server, scans, config.COUNTRY_HEADER);
  await listen(server, config);
  running.defer(() => stop(server, fast));

  const { port } = server.address() as AddressInfo;
  logger.info({ port }, 'the gateway is ready');
  process.send?.({ type: 'ready', port });
  const reason = await askedToStop();
  logger.info({ reason }, 'the gateway stops');
  // A log that is away must not keep the process: by then the spool has everything on disk.
  setTimeout(() => process.exit(), GRACE_MS + SHIP_MS + CLOSE_MS);
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

function expectWritable(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
  } catch (error) {
    throw new Sentence(`DATA_DIR ${folder} can't be written to (${(error as NodeJS.ErrnoException).code}).`);
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

/** Takes no more connections and lets the answers in hand leave. */
async function stop(server: Server, fast: FastLane): Promise<void> {
  const timer = setTimeout(() => {
    server.closeAllConnections();
    fast.destroy();
  }, GRACE_MS);
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeIdleConnections();
    fast.stop();
  });
  clearTimeout(timer);
}

/** Resolves when a signal asks for it, or when the process that started us is gone. */
function askedToStop(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => resolve(signal));
    process.once('disconnect', () => resolve('our parent process is gone'));
  });
}

try {
  await main(readVariables(GATEWAY_VARIABLES, process.env));
} catch (error) {
  const known = error instanceof WrongVariables || error instanceof Sentence;
  console.error(known ? error.message : error);
  process.exitCode = 1;
}
// Connections that a library keeps must not keep the process.
process.exit();
