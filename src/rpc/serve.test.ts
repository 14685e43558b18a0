import { randomBytes } from 'node:crypto';
import { Code, ConnectError, createClient, type Interceptor, type Transport } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Health, HealthCheckResponse_ServingStatus as Status } from '../../proto/gen/grpc/health/v1/health_pb.ts';
import { ServerReflection } from '../../proto/gen/grpc/reflection/v1/reflection_pb.ts';
import { AccountsService, Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { BatchesService } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { serviceTokens } from '../access/service-token.ts';
import { clearance } from '../accounts/clear.ts';
import { accountsService } from '../accounts/service.ts';
import { cursors } from '../codes/cursor.ts';
import { codesService } from '../codes/service.ts';
import { readFailure } from '../contract/errors.ts';
import { type Database, openDatabase } from '../db/database.ts';
import { type Servers, serve } from './serve.ts';

const TOKEN = randomBytes(32).toString('hex');
const OLD_TOKEN = randomBytes(32).toString('hex');
const TARGET = 'https://example.com/menu';

let database: Database;
let servers: Servers;
let apiKey: string;

beforeAll(async () => {
  database = await openDatabase((await freshDatabase()).url, 20);
  const { pool } = database;
  servers = await serve({
    host: '127.0.0.1',
    connectPort: 0,
    grpcPort: 0,
    register: (services) => {
      const platformUrl = 'https://sign.example';
      services.service(
        CodesService,
        codesService({ pool, platformUrl, cursors: cursors(randomBytes(32)), changed() {} }),
      );
      services.service(
        AccountsService,
        accountsService({ database, clearance: clearance(pool, { stop: [], erase: [] }), changed() {} }),
      );
      services.service(BatchesService, {});
    },
    pool,
    tokens: serviceTokens([TOKEN, OLD_TOKEN]),
    logger: pino({ level: 'silent' }),
  });
});
afterAll(async () => {
  await servers.stop(1_000);
  await database.close();
});

const bearer =
  (token: string, headers: Record<string, string> = {}): Interceptor =>
  (next) =>
  (request) => {
    request.header.set('authorization', `Bearer ${token}`);
    for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
    return next(request);
  };

const connectUrl = () => `http://127.0.0.1:${servers.connectPort}`;
const grpcUrl = () => `http://127.0.0.1:${servers.grpcPort}`;

/** Every way in: what holds for one has to hold for all. */
const WAYS: [string, (interceptors: Interceptor[]) => Transport][] = [
  [
    'Connect over HTTP/1.1',
    (interceptors) => createConnectTransport({ baseUrl: connectUrl(), httpVersion: '1.1', interceptors }),
  ],
  [
    'Connect over HTTP/2',
    (interceptors) => createConnectTransport({ baseUrl: connectUrl(), httpVersion: '2', interceptors }),
  ],
  ['gRPC-Web', (interceptors) => createGrpcWebTransport({ baseUrl: connectUrl(), httpVersion: '1.1', interceptors })],
  ['gRPC on the Connect port', (interceptors) => createGrpcTransport({ baseUrl: connectUrl(), interceptors })],
  ['native gRPC', (interceptors) => createGrpcTransport({ baseUrl: grpcUrl(), interceptors })],
];

async function reasonOf(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return readFailure(error).reason;
}

describe.each(WAYS)('%s', (_, over) => {
  beforeAll(async () => {
    const accounts = createClient(AccountsService, over([bearer(TOKEN)]));
    ({ apiKey } = await accounts.createAccount({ name: 'A', plan: Plan.BUSINESS }));
  });
  const codes = (headers?: Record<string, string>) => createClient(CodesService, over([bearer(apiKey, headers)]));

  test('creates and reads a code, and tells the rate as response metadata', async () => {
    const created = await codes().createCode({ targetUrl: TARGET });
    let rate: Headers | undefined;
    const read = await codes().getCode({ id: created.code?.id ?? '' }, { onHeader: (headers) => (rate = headers) });
    expect(read.code).toEqual(created.code);
    expect(rate?.get('ratelimit-limit')).toBe('50000');
    expect(rate?.get('ratelimit-remaining')).toBe('49998');
  });

  test('an error carries its reason, its sentence and the rate', async () => {
    const error = await codes().getCode({ id: 'qr_none' }).catch(ConnectError.from);
    if (!(error instanceof ConnectError)) throw new Error('the call succeeded');
    expect(error.code).toBe(Code.NotFound);
    expect(readFailure(error)).toMatchObject({
      reason: 'NOT_FOUND',
      message: 'There is no such code on this account.',
    });
    expect(error.metadata.get('ratelimit-limit')).toBe('50000');
  });

  test('a constraint of the proto file is enforced, and names its field', async () => {
    const error = await codes()
      .createCode({ targetUrl: TARGET, name: 'x'.repeat(201) })
      .catch(ConnectError.from);
    expect(readFailure(error)).toMatchObject({ reason: 'INVALID_FIELD', message: expect.stringMatching(/^name: /) });
  });

  test('no key, a wrong key and a token that is none are all turned away', async () => {
    expect(await reasonOf(createClient(CodesService, over([])).listCodes({}))).toBe('UNAUTHENTICATED');
    for (const token of ['sk_live_x', `sk_live_${'a'.repeat(43)}`, 'x']) {
      expect(await reasonOf(createClient(CodesService, over([bearer(token)])).listCodes({}))).toBe('UNAUTHENTICATED');
    }
  });

  test('an API key opens no internal method', async () => {
    const accounts = createClient(AccountsService, over([bearer(apiKey)]));
    expect(await reasonOf(accounts.listAccounts({}))).toBe('INTERNAL_METHOD');
  });

  test('an internal service names the account that it acts for; both tokens of a rotation open', async () => {
    const { account, apiKey: key } = await createClient(AccountsService, over([bearer(OLD_TOKEN)])).createAccount({
      name: 'B',
      plan: Plan.FREE,
    });
    const acting = createClient(CodesService, over([bearer(TOKEN, { 'signpost-account': account?.id ?? '' })]));
    expect((await acting.createCode({ targetUrl: TARGET })).code?.targetUrl).toBe(TARGET);
    expect(await reasonOf(createClient(CodesService, over([bearer(TOKEN)])).listCodes({}))).toBe('NOT_FOUND');
    expect(await reasonOf(createClient(CodesService, over([bearer(key)])).listCodes({}))).toBe(
      'BUSINESS_PLAN_REQUIRED',
    );
  });

  test('a method that is not there answers unimplemented', async () => {
    const batches = createClient(BatchesService, over([bearer(apiKey)]));
    expect(await reasonOf(batches.listBatches({}))).toBe('UNIMPLEMENTED');
  });

  test('a deadline is kept', async () => {
    const error = await codes().listCodes({}, { timeoutMs: 1 }).catch(ConnectError.from);
    // Either the caller or the server is the first to notice.
    if (error instanceof ConnectError) expect(error.code).toBe(Code.DeadlineExceeded);
  });

  test('health is open to anybody and knows its services', async () => {
    const health = createClient(Health, over([]));
    expect((await health.check({})).status).toBe(Status.SERVING);
    expect((await health.check({ service: CodesService.typeName })).status).toBe(Status.SERVING);
    expect(await health.check({ service: 'none' }).catch(({ code }: ConnectError) => code)).toBe(Code.NotFound);
    for await (const { status } of health.watch({})) {
      expect(status).toBe(Status.SERVING);
      break;
    }
  });

  test('the same idempotency key gives one code, and the second answer is marked', async () => {
    const client = codes({ 'idempotency-key': randomBytes(8).toString('hex') });
    const replays: (string | null)[] = [];
    const onHeader = (headers: Headers) => replays.push(headers.get('idempotent-replay'));
    const first = await client.createCode({ targetUrl: TARGET }, { onHeader });
    const second = await client.createCode({ targetUrl: TARGET }, { onHeader });
    expect(second).toEqual(first);
    expect(replays).toEqual(['false', 'true']);
    expect(await reasonOf(client.createCode({ targetUrl: `${TARGET}/2` }))).toBe('IDEMPOTENCY_KEY_REUSED');
  });
});

test.each([
  ['the Connect port', () => connectUrl()],
  ['the native gRPC port', () => grpcUrl()],
])('reflection on %s lists the services and gives a file with everything that it imports', async (_, url) => {
  const client = createClient(ServerReflection, createGrpcTransport({ baseUrl: url(), interceptors: [bearer(TOKEN)] }));
  async function* requests() {
    yield { host: '', messageRequest: { case: 'listServices' as const, value: '' } };
    yield { host: '', messageRequest: { case: 'fileContainingSymbol' as const, value: CodesService.typeName } };
  }
  const answers = await Array.fromAsync(client.serverReflectionInfo(requests()));
  const [listed, described] = answers.map(({ messageResponse }) => messageResponse);
  if (listed?.case !== 'listServicesResponse' || described?.case !== 'fileDescriptorResponse') {
    throw new Error(`answered with ${listed?.case} and ${described?.case}`);
  }
  expect(listed.value.service.map(({ name }) => name)).toContain(CodesService.typeName);
  const files = described.value.fileDescriptorProto.map((bytes) => Buffer.from(bytes).toString('latin1'));
  for (const name of [
    'signpost/codes/v1/codes.proto',
    'buf/validate/validate.proto',
    'google/protobuf/descriptor.proto',
  ]) {
    expect(files.some((file) => file.includes(name))).toBe(true);
  }
});

test('one code for twenty requests with one idempotency key at once', async () => {
  const transport = createGrpcTransport({
    baseUrl: grpcUrl(),
    interceptors: [bearer(apiKey, { 'idempotency-key': 'at-once' })],
  });
  const client = createClient(CodesService, transport);
  const answers = await Promise.all(
    Array.from({ length: 20 }, () =>
      client.createCode({ targetUrl: TARGET }).then(
        ({ code }) => code?.id,
        (error: unknown) => readFailure(error).reason,
      ),
    ),
  );
  const [id, ...others] = new Set(answers.filter((answer) => answer !== 'IDEMPOTENCY_KEY_IN_FLIGHT'));
  expect(id).toMatch(/^qr_/);
  expect(others).toEqual([]);
});

test('the code limit is exact when forty codes are created at once', async () => {
  const accounts = createClient(
    AccountsService,
    createGrpcTransport({ baseUrl: grpcUrl(), interceptors: [bearer(TOKEN)] }),
  );
  const limited = await accounts.createAccount({ name: 'L', plan: Plan.BUSINESS, overrides: { codeLimit: 7n } });
  const client = createClient(
    CodesService,
    createGrpcTransport({ baseUrl: grpcUrl(), interceptors: [bearer(limited.apiKey)] }),
  );
  const answers = await Promise.all(
    Array.from({ length: 40 }, () =>
      client.createCode({ targetUrl: TARGET }).then(
        () => 'created',
        (error: unknown) => readFailure(error),
      ),
    ),
  );
  expect(answers.filter((answer) => answer === 'created')).toHaveLength(7);
  const refused = answers.filter((answer) => answer !== 'created');
  expect(refused).toHaveLength(33);
  for (const each of refused)
    expect(each).toMatchObject({ reason: 'QR_LIMIT_REACHED', details: { limit: '7', used: '7' } });
});
