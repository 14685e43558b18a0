import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { promisify } from 'node:util';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { pino } from 'pino';
import { beforeAll, expect, test } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { ErrorInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';
import { ServerReflection } from '../../proto/gen/grpc/reflection/v1/reflection_pb.ts';
import { AccountsService, Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { BatchesService } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { serviceTokens } from '../access/service-token.ts';
import { bearer, conformance } from './rpc-suite.fixture.ts';
import { type Serving, startServing, TARGET, WAYS } from './serve.fixture.ts';
import { serve } from './serve.ts';

let serving: Serving;
beforeAll(async () => {
  serving = await startServing();
});

const connectUrl = () => `http://127.0.0.1:${serving.connectPort}`;
const grpcUrl = () => `http://127.0.0.1:${serving.grpcPort}`;
const internally = () => createGrpcTransport({ baseUrl: grpcUrl(), interceptors: [bearer(serving.tokens[0])] });

for (const [name, over] of WAYS) {
  conformance(
    name,
    () => serving,
    (interceptors) => over(serving, interceptors),
  );
}

test('both servers share the service implementations, so their limits hold for the process', async () => {
  let made = 0;
  const servers = await serve({
    host: '127.0.0.1',
    connectPort: 0,
    grpcPort: 0,
    register: (services) => {
      made++;
      services.service(CodesService, {});
    },
    pool: undefined as never,
    tokens: serviceTokens([]),
    standardCallers: { health: 'everyone', reflection: 'loopback' },
    corsOrigins: [],
    logger: pino({ level: 'silent' }),
  });
  await servers.stop(0);
  expect(made).toBe(1);
});

test('a call that is refused before its malformed body has one answer', async () => {
  const socket = connect(serving.connectPort, '127.0.0.1');
  const received = socket.toArray();
  const path = '/signpost.codes.v1.CodesService/GetCode';
  const head = ['host: a', 'content-type: application/json', 'transfer-encoding: chunked', '', ''].join('\r\n');
  socket.write(`POST ${path} HTTP/1.1\r\n${head}`);
  await once(socket, 'readable');
  socket.write('zz\r\n');
  const statuses = Buffer.concat(await received)
    .toString()
    .match(/HTTP\/1\.1 \d+/gm);
  expect(statuses).toEqual(['HTTP/1.1 401']);
});

test('two lists of an account are read at a time, over both servers together', async () => {
  const accounts = createClient(AccountsService, internally());
  const newKey = async () => (await accounts.createAccount({ name: 'A', plan: Plan.BUSINESS })).apiKey;
  const [apiKey, otherKey] = [await newKey(), await newKey()];
  let started = 0;
  serving.slow.on('started', () => started++);
  const leaving = new AbortController();
  const list = (baseUrl: string, key: string) => {
    const transport = createGrpcTransport({ baseUrl, interceptors: [bearer(key)] });
    return createClient(BatchesService, transport).getBatch({}, { signal: leaving.signal });
  };
  const urls = [connectUrl(), grpcUrl()];
  const lists = [...urls, ...urls, ...urls].map((url) => list(url, apiKey));
  await expect.poll(() => started).toBe(2);
  lists.push(...urls.map((url) => list(url, otherKey)));
  await expect.poll(() => started).toBe(4);
  leaving.abort();
  await Promise.allSettled(lists);
});

test.each([
  ['the Connect port', () => connectUrl()],
  ['the native gRPC port', () => grpcUrl()],
])('reflection on %s lists the services and returns a file with everything it imports', async (_, url) => {
  const interceptors = [bearer(serving.tokens[0])];
  const client = createClient(ServerReflection, createGrpcTransport({ baseUrl: url(), interceptors }));
  async function* requests() {
    yield { host: '', messageRequest: { case: 'listServices' as const, value: '' } };
    yield { host: '', messageRequest: { case: 'fileContainingSymbol' as const, value: CodesService.typeName } };
    yield { host: '', messageRequest: { case: 'fileContainingSymbol' as const, value: ErrorInfoSchema.typeName } };
  }
  const answers = await Array.fromAsync(client.serverReflectionInfo(requests()));
  const [listed, described, details] = answers.map(({ messageResponse }) => messageResponse);
  if (listed?.case !== 'listServicesResponse' || described?.case !== 'fileDescriptorResponse') {
    throw new Error(`answered with ${listed?.case} and ${described?.case}`);
  }
  // What errors carry, though no method's messages name it.
  expect(details?.case).toBe('fileDescriptorResponse');
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

const run = promisify(execFile);
const hasGrpcurl = await run('grpcurl', ['-version']).then(
  () => true,
  () => false,
);

/** Tools that use only reflection; grpcurl if it is installed. */
const TOOLS = [
  {
    tool: 'buf curl',
    call: async (port: number, headers: string[], method: string, body: string) => {
      const flags = ['--protocol', 'grpc', '--http2-prior-knowledge', '--reflect-header', '*', '--data', body];
      return run('buf', ['curl', ...flags, ...headers, `http://127.0.0.1:${port}/${method}`]);
    },
  },
  {
    tool: 'grpcurl',
    call: async (port: number, headers: string[], method: string, body: string) =>
      run('grpcurl', ['-plaintext', '-d', body, ...headers, `127.0.0.1:${port}`, method]),
  },
].filter(({ tool }) => tool !== 'grpcurl' || hasGrpcurl);

test.each(TOOLS)('$tool calls a method by reflection, on either port', async ({ call }) => {
  const { account } = await createClient(AccountsService, internally()).createAccount({ name: 'A', plan: Plan.FREE });
  const headers = [`authorization: Bearer ${serving.tokens[0]}`, `signpost-account: ${account?.id}`];
  const flags = headers.flatMap((header) => ['-H', header]);
  for (const port of [serving.connectPort, serving.grpcPort]) {
    const body = JSON.stringify({ targetUrl: TARGET, name: 'Küche' });
    const { stdout } = await call(port, flags, 'signpost.codes.v1.CodesService/CreateCode', body);
    expect(JSON.parse(stdout)).toMatchObject({ code: { targetUrl: TARGET, name: 'Küche' } });
  }
});

test('twenty concurrent requests with one idempotency key create one code', async () => {
  const { apiKey } = await createClient(AccountsService, internally()).createAccount({
    name: 'A',
    plan: Plan.BUSINESS,
  });
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

test('the code limit is exact for forty concurrent requests', async () => {
  const accounts = createClient(AccountsService, internally());
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
