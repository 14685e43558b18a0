import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Attributes, createNoopMeter, metrics } from '@opentelemetry/api';
import { pino } from 'pino';
import { beforeAll, expect, test, vi } from 'vitest';
import { failure } from '../../common/contract/errors.ts';
import { LOOPBACK } from '../../local/free-port.ts';
import { AdmissionService } from '../../proto/gen/signpost/access/v1/admission_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { serveGrpc } from '../../src/rpc/grpc-server.ts';
import { afterFile } from '../../test/harness/after-file.ts';
import { createCoreClients } from '../core/clients.ts';
import { limitAttempts } from '../http/address-limits.ts';
import { createApi } from './api.ts';
import { limitAuthenticationFailures } from './authentication-attempts.ts';

const UUID = '01kagcpn9te5gvjxq1rmm30w4h';
const KEY = `Bearer sk_live_${'a'.repeat(43)}`;

/** Emits events of calls in the core: `started`, and `aborted` when one ends before it is answered. */
const calls = new EventEmitter();
/** Lets the core answer a call. */
let answer = Promise.withResolvers<void>();
let port: number;
/** Whether the core rejects the key, although it was valid before. */
let isRevoked = false;
/** The attributes of all measurements. */
const measured: Attributes[] = [];

beforeAll(async () => {
  const record = (_: number, attributes: Attributes = {}) => void measured.push(attributes);
  const meter = Object.assign(createNoopMeter(), { createHistogram: () => ({ record }) });
  metrics.setGlobalMeterProvider({ getMeter: () => meter });
  const slow = async (signal: AbortSignal) => {
    answer = Promise.withResolvers();
    const abort = () => calls.emit('aborted');
    signal.addEventListener('abort', abort);
    calls.emit('started');
    await answer.promise;
    signal.removeEventListener('abort', abort);
    calls.emit('answered');
    return { code: { id: `qr_${UUID}` } };
  };
  const core = await serveGrpc({
    host: LOOPBACK,
    port: 0,
    register(services) {
      services.service(AdmissionService, {
        async authenticate(_, { requestHeader, signal }) {
          if (requestHeader.get('authorization') === KEY) return { accountId: `acct_${UUID}` };
          await slow(signal);
          throw failure('UNAUTHENTICATED', 'The API key is invalid.');
        },
      });
      services.service(CodesService, {
        getCode(_, { signal }) {
          if (isRevoked) throw failure('UNAUTHENTICATED', 'The API key is invalid.');
          return slow(signal);
        },
        createCode: (_, { signal }) => slow(signal),
      });
    },
    gate: async () => {},
    interceptors: [],
    largeMessages: (_caller, _signal, work) => work(() => undefined),
    logger: pino({ level: 'silent' }),
  });
  afterFile(() => core.stop(0));
  const clients = createCoreClients({ addresses: [`${LOOPBACK}:${core.port}`], timeoutMs: 20_000 });
  afterFile(async () => clients.close());
  const api = await createApi({
    core: clients,
    logger: pino({ level: 'silent' }),
    attempts: limitAuthenticationFailures(
      limitAttempts(1),
      () => LOOPBACK,
      () => {},
    ),
    publicUrl: 'http://a.example',
    onRoute: async () => {},
  });
  const server = createServer((asked: IncomingMessage, response: ServerResponse) => api.handle(asked, response));
  server.listen(0, LOOPBACK);
  await once(server, 'listening');
  afterFile(async () => {
    server.closeAllConnections();
    server.close();
  });
  ({ port } = server.address() as AddressInfo);
});

function ask(method: string, path: string, body?: string, authorization = KEY) {
  const headers = { authorization };
  const asked = request({ host: LOOPBACK, port, method, path: `/api/v1${path}`, headers, agent: false });
  asked.on('error', () => {});
  asked.end(body);
  return asked;
}

const ofRequests = () => measured.filter((attributes) => 'http.route' in attributes);

test('a caller that disconnects during a read cancels its call in the core, and counts as no error', async () => {
  const [started, aborted] = [once(calls, 'started'), once(calls, 'aborted')];
  const asked = ask('GET', `/qr-codes/qr_${UUID}`);
  await started;
  asked.destroy();
  await aborted;
  answer.resolve();
  await vi.waitFor(() => expect(ofRequests()).toMatchObject([{ 'http.response.status_code': 499 }]));
  expect(ofRequests()[0]).not.toHaveProperty('error.type');
});

test.each([
  ['POST', '/qr-codes', '{"target_url":"https://a.example/"}', true],
  ['GET', `/qr-codes/qr_${UUID}`, undefined, false],
])(
  'a caller that disconnects during a change, or with the response of a read, cancels nothing: %s',
  async (method, path, body, early) => {
    let aborts = 0;
    calls.on('aborted', () => aborts++);
    const started = once(calls, 'started');
    const asked = ask(method, path, body);
    await started;
    if (early) asked.destroy();
    // Long enough for a cancellation to arrive, if there is one.
    await sleep(300);
    const answered = once(calls, 'answered');
    answer.resolve();
    await answered;
    if (!early) {
      const [response] = await once(asked, 'response');
      response.resume();
      await once(response, 'end');
      asked.destroy();
      await sleep(300);
    }
    expect(aborts).toBe(0);
  },
);

test('a caller that disconnects while a wrong key is checked has failed to authenticate', async () => {
  measured.length = 0;
  const started = once(calls, 'started');
  const asked = ask('GET', `/qr-codes/qr_${UUID}`, undefined, `Bearer sk_live_${'b'.repeat(43)}`);
  await started;
  asked.destroy();
  // Long enough for the gateway to notice.
  await sleep(300);
  answer.resolve();
  await vi.waitFor(() => expect(ofRequests()).toMatchObject([{ 'http.response.status_code': 499 }]));
  const [response] = await once(ask('GET', `/qr-codes/qr_${UUID}`, undefined, 'Bearer sk_live_c'), 'response');
  expect(response.statusCode).toBe(429);
});

test('a key that was valid lately is limited like any other once the core has rejected it', async () => {
  isRevoked = true;
  const statusOf = async () => {
    const [response] = await once(ask('GET', `/qr-codes/qr_${UUID}`), 'response');
    return response.resume().statusCode;
  };
  expect([await statusOf(), await statusOf()]).toEqual([401, 429]);
});
