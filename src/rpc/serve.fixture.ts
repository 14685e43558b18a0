import { randomBytes } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import type { HandlerContext, Interceptor, Transport } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node';
import { pino } from 'pino';
import { AdmissionService } from '../../proto/gen/signpost/access/v1/admission_pb.ts';
import { AccountsService } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { BatchesService } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { ImagesService } from '../../proto/gen/signpost/images/v1/images_pb.ts';
import { afterFile } from '../../test/harness/after-file.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { admissionService } from '../access/service.ts';
import { serviceTokens } from '../access/service-token.ts';
import { createAccountCleanup } from '../accounts/cleanup.ts';
import { accountsService } from '../accounts/service.ts';
import { cursors } from '../calls/cursors.ts';
import { platformHosts } from '../codes/fields/platform-hosts.ts';
import { codesService } from '../codes/service.ts';
import { openDatabase } from '../db/database.ts';
import { entities } from '../entities.ts';
import { type Servers, serve } from './serve.ts';
import type { Tls } from './tls.ts';

export const TARGET = 'https://example.com/menu';

/** Both servers of a core with a database of their own. */
export interface Serving extends Servers {
  /** The current token and the previous one. */
  readonly tokens: readonly [string, string];
  /**
   * Neither ImagesService nor `getBatch` answers; they emit `started`, and `aborted` when the call has ended for the
   * caller.
   */
  readonly slow: EventEmitter;
}

/** Serves until the calling test file has finished. */
export async function startServing(
  tls?: Tls,
  options: Partial<Pick<Parameters<typeof serve>[0], 'standardCallers' | 'corsOrigins' | 'host'>> = {},
): Promise<Serving> {
  const database = await openDatabase((await freshDatabase()).url, 20, entities);
  const { pool } = database;
  const tokens = [randomBytes(32).toString('hex'), randomBytes(32).toString('hex')] as const;
  const slow = new EventEmitter();
  const servers = await serve({
    host: '127.0.0.1',
    connectPort: 0,
    grpcPort: 0,
    register: (services) => {
      const { byId } = cursors(randomBytes(32));
      const platformUrl = 'https://sign.example';
      services.service(
        CodesService,
        codesService({ database, platformUrl, isPlatformHost: platformHosts(platformUrl, []), cursors: byId }),
      );
      services.service(
        AccountsService,
        accountsService({
          database,
          cursors: byId,
          accountCleanup: createAccountCleanup(pool, { stop: [], erase: [] }),
        }),
      );
      services.service(AdmissionService, admissionService(pool));
      const wait = async (_: unknown, { signal }: HandlerContext) => {
        slow.emit('started');
        if (!signal.aborted) await once(signal, 'abort');
        slow.emit('aborted');
        throw signal.reason;
      };
      services.service(BatchesService, { getBatch: wait });
      services.service(ImagesService, { renderImage: wait });
    },
    pool,
    tokens: serviceTokens(tokens),
    tls,
    standardCallers: { health: 'everyone', reflection: 'loopback' },
    corsOrigins: [],
    ...options,
    logger: pino({ level: 'silent' }),
  });
  afterFile(async () => {
    await servers.stop(1_000);
    await database.close();
  });
  return { ...servers, tokens, slow };
}

/** A client's side of TLS; PEM. */
export interface ClientTls {
  readonly ca: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

/** Every transport of a core. */
export const WAYS: readonly [
  name: string,
  over: (serving: Serving, interceptors: Interceptor[], tls?: ClientTls) => Transport,
][] = [
  ['Connect over HTTP/1.1', (...way) => createConnectTransport({ ...options('connectPort', way), httpVersion: '1.1' })],
  ['Connect over HTTP/2', (...way) => createConnectTransport({ ...options('connectPort', way), httpVersion: '2' })],
  ['gRPC-Web', (...way) => createGrpcWebTransport({ ...options('connectPort', way), httpVersion: '1.1' })],
  ['gRPC on the Connect port', (...way) => createGrpcTransport(options('connectPort', way))],
  ['native gRPC', (...way) => createGrpcTransport(options('grpcPort', way))],
];

function options(
  port: 'connectPort' | 'grpcPort',
  [serving, interceptors, tls]: [Serving, Interceptor[], (ClientTls | undefined)?],
) {
  const baseUrl = `${tls ? 'https' : 'http'}://localhost:${serving[port]}`;
  return { baseUrl, interceptors, ...(tls ? { nodeOptions: { ...tls } } : {}) };
}
