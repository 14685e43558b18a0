import { networkInterfaces } from 'node:os';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { describe, expect, test } from 'vitest';
import { Health, HealthCheckResponse_ServingStatus as Status } from '../../proto/gen/grpc/health/v1/health_pb.ts';
import { ServerReflection } from '../../proto/gen/grpc/reflection/v1/reflection_pb.ts';
import { AccountsService } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import type { StandardCallers } from '../access/requirements.ts';
import { reflection } from './reflection.ts';
import { bearer, reasonOf } from './rpc-suite.fixture.ts';
import { startServing } from './serve.fixture.ts';

const OTHER_ADDRESS = Object.values(networkInterfaces())
  .flat()
  .find((address) => address && !address.internal && address.family === 'IPv4')?.address;

const REQUEST = { host: '', messageRequest: { case: 'listServices' as const, value: '' } };

async function* one() {
  yield REQUEST;
}

/** What health and reflection answer on both ports of a core with this configuration. */
async function outcomes(standardCallers: StandardCallers, host: string, token?: string): Promise<unknown[]> {
  const serving = await startServing(undefined, { standardCallers, host: '0.0.0.0' });
  const interceptors = token === undefined ? [] : [bearer(token === 'valid' ? serving.tokens[0] : token)];
  const open = (port: number) => createGrpcTransport({ baseUrl: `http://${host}:${port}` });
  const results: unknown[] = [];
  for (const port of [serving.connectPort, serving.grpcPort]) {
    const transport = createGrpcTransport({ baseUrl: `http://${host}:${port}`, interceptors });
    const health = createClient(Health, transport);
    const { serverReflectionInfo } = createClient(ServerReflection, transport);
    const or = (call: Promise<unknown>) => call.catch(() => reasonOf(call));
    results.push(await or(health.check({}).then(({ status }) => (status === Status.SERVING ? 'SERVING' : status))));
    results.push(
      await or(Array.fromAsync(serverReflectionInfo(one())).then(([answer]) => answer?.messageResponse.case)),
    );
    // Whatever these need, every other call needs a token.
    expect(await reasonOf(createClient(AccountsService, open(port)).listAccounts({}))).toBe(CLOSED);
  }
  expect(results.slice(2)).toEqual(results.slice(0, 2));
  return results.slice(0, 2);
}

const DEFAULTS = { health: 'everyone', reflection: 'loopback' } as const;
const OPEN = ['SERVING', 'listServicesResponse'];
const CLOSED = 'INVALID_SERVICE_TOKEN';

test('by default, health and reflection need no token on loopback, whatever token is sent', async () => {
  expect(await outcomes(DEFAULTS, '127.0.0.1')).toEqual(OPEN);
  expect(await outcomes(DEFAULTS, '127.0.0.1', 'wrong')).toEqual(OPEN);
});

test('they need one where they are configured to', async () => {
  const nobody = { health: 'nobody', reflection: 'nobody' } as const;
  expect(await outcomes(nobody, '127.0.0.1')).toEqual([CLOSED, CLOSED]);
  expect(await outcomes(nobody, '127.0.0.1', 'valid')).toEqual(OPEN);
});

describe.skipIf(!OTHER_ADDRESS)('from another address,', () => {
  const host = OTHER_ADDRESS ?? '';
  test('only health needs no token by default', async () => {
    expect(await outcomes(DEFAULTS, host)).toEqual(['SERVING', CLOSED]);
    expect(await outcomes(DEFAULTS, host, 'valid')).toEqual(OPEN);
  });

  test('each is open as configured', async () => {
    expect(await outcomes({ health: 'loopback', reflection: 'everyone' }, host)).toEqual([
      CLOSED,
      'listServicesResponse',
    ]);
  });
});

describe('a stream of reflection is bounded:', () => {
  const call = (limits: { most: number; lastsMs: number; requests: number }) => {
    const info = reflection([CodesService], limits);
    return (requests: AsyncIterable<typeof REQUEST>) =>
      info(requests as never, { signal: new AbortController().signal } as never)[Symbol.asyncIterator]();
  };
  async function* endless() {
    yield REQUEST;
    await new Promise(() => {});
  }

  test('in number, and one that ends makes room', async () => {
    const reflect = call({ most: 1, lastsMs: 60_000, requests: 10 });
    const first = reflect(endless());
    await first.next();
    await expect(reflect(one()).next()).rejects.toThrow('Too many clients use reflection; try again later.');
    await first.return?.();
    expect((await reflect(one()).next()).done).toBe(false);
  });

  test('in time, and in requests', async () => {
    const short = call({ most: 1, lastsMs: 50, requests: 10 })(endless());
    expect((await short.next()).done).toBe(false);
    expect((await short.next()).done).toBe(true);
    async function* many() {
      for (;;) yield REQUEST;
    }
    const few = call({ most: 1, lastsMs: 60_000, requests: 3 })(many());
    expect((await Array.fromAsync({ [Symbol.asyncIterator]: () => few })).length).toBe(3);
  });
});
