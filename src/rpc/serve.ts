import type { DescMethod, DescService } from '@bufbuild/protobuf';
import type { Interceptor, ServiceImpl } from '@connectrpc/connect';
import type { Pool } from 'pg';
import type { Logger } from 'pino';
import { methodName } from '../../common/contract/method-name.ts';
import { listenFailure } from '../../common/http/listen-failure.ts';
import { promptStatement, run } from '../../common/postgres/sql.ts';
import { fairQueue } from '../../common/queues/fair-queue.ts';
import { singleFlight } from '../../common/runtime/single-flight.ts';
import { Health } from '../../proto/gen/grpc/health/v1/health_pb.ts';
import { ServerReflection } from '../../proto/gen/grpc/reflection/v1/reflection_pb.ts';
import { ServerReflection as ServerReflectionAlpha } from '../../proto/gen/grpc/reflection/v1alpha/reflection_pb.ts';
import { access } from '../access/interceptor.ts';
import { openRequestLog } from '../access/request-log.ts';
import { requirementsOf, type StandardCallers } from '../access/requirements.ts';
import type { ServiceTokens } from '../access/service-token.ts';
import { releaseSlots } from '../calls/message-slot.ts';
import { serveConnect } from './connect-server.ts';
import { serveGrpc } from './grpc-server.ts';
import { healthService } from './health.ts';
import { limitImages } from './image-queue.ts';
import { limitLists } from './list-queue.ts';
import { observe } from './observe.ts';
import { alphaReflection, reflection } from './reflection.ts';
import type { ListeningServer, RegisterServices, Services } from './server-options.ts';
import { rejectTimeouts } from './timeouts.ts';
import type { Tls } from './tls.ts';
import { validate } from './validate.ts';

/** The two servers of a core. */
export interface Servers {
  readonly connectPort: number;
  readonly grpcPort: number;
  /** From now on health is not serving, and each HTTP/1.1 connection is closed after its next response. */
  drain(): void;
  /** Rejects new calls and lets running ones finish, for at most `graceMs`. */
  stop(graceMs: number): Promise<void>;
}

/**
 * Large messages that are received and stored concurrently: each needs about 50 MB with everything created from it, and
 * then a connection to Postgres. Each caller may have two, so that one neither blocks the others nor takes all
 * connections: beside 50 batches of another account, a read took up to 1,422 ms without this limit, and 234 with it.
 */
const LARGE_MESSAGES = { concurrency: 16, concurrencyPerCaller: 2, maxWaiting: 500, items: 'large messages' };

/**
 * Serves the modules' services, health and reflection on both servers. Each call first passes the gate, which traces
 * and admits it before its message is read, and then the interceptors: errors, access, queues of images and lists,
 * validation. Throws when a method states no requirements, or no role for members.
 */
export async function serve(options: {
  host: string;
  connectPort: number;
  grpcPort: number;
  register: RegisterServices;
  pool: Pool;
  tokens: ServiceTokens;
  /** Who may call health and reflection without a token. */
  standardCallers: StandardCallers;
  /** Origins whose pages may call the Connect port. */
  corsOrigins: readonly string[];
  /** Undefined: both servers use cleartext and no client certificates. */
  tls?: Tls | undefined;
  /** Other parts of this process that health reports by name: whether each is healthy. */
  parts?: Readonly<Record<string, () => boolean>>;
  logger: Logger;
}): Promise<Servers> {
  const implemented: [DescService, Partial<ServiceImpl<DescService>>][] = [];
  const target: Services = {
    service: (service, implementation) => implemented.push([service, implementation as never]),
  };
  options.register(target);
  const services = implemented.map(([service]) => service);
  const methods = new Map(services.flatMap((service) => service.methods.map((method) => [methodName(method), method])));
  for (const method of methods.values()) requirementsOf(method);

  let serving = true;
  const answers = singleFlight(() => postgresAnswers(options.pool));
  addStandardServices(target, services, async () => serving && (await answers()), options.parts ?? {});
  const register = (target: Services) => {
    // Implementations are shared by both servers, and so are their limits.
    for (const [service, implementation] of implemented) target.service(service, implementation);
  };
  const observer = observe(options.logger);
  const methodNamed = (name: string): DescMethod | undefined => methods.get(name);
  const requestLog = openRequestLog(options.pool, options.logger);
  const { admit, interceptor: accessInterceptor } = access({ ...options, methodNamed, requestLog });
  const interceptors: Interceptor[] = [
    releaseSlots,
    observer.interceptor,
    accessInterceptor,
    limitImages(),
    limitLists(),
    validate,
  ];
  const servers: ListeningServer[] = [];
  const drain = () => {
    serving = false;
    for (const server of servers) server.drain();
  };
  const stop = async (graceMs: number) => {
    drain();
    await Promise.all(servers.map((server) => server.stop(graceMs)));
    await requestLog.stop();
  };
  try {
    const { host, tls, logger } = options;
    const sharedOptions = {
      host,
      tls,
      logger,
      register,
      gate: observer.gate(rejectTimeouts(admit)),
      interceptors,
      largeMessages: fairQueue(LARGE_MESSAGES),
    };
    const connect = await serveConnect({
      ...sharedOptions,
      port: options.connectPort,
      corsOrigins: options.corsOrigins,
    }).catch((error: unknown) => {
      throw listenFailure('CORE_PORT', options.connectPort, error);
    });
    servers.push(connect);
    const grpc = await serveGrpc({ ...sharedOptions, port: options.grpcPort }).catch((error: unknown) => {
      throw listenFailure('GRPC_PORT', options.grpcPort, error);
    });
    servers.push(grpc);
    return { connectPort: connect.port, grpcPort: grpc.port, drain, stop };
  } catch (error) {
    await stop(0);
    throw error;
  }
}

/** Adds health and reflection of `services`. `parts`: see `serve`. */
function addStandardServices(
  target: Services,
  services: readonly DescService[],
  isServing: () => Promise<boolean>,
  parts: Readonly<Record<string, () => boolean>>,
): void {
  const checks = new Map([
    ['', isServing],
    ...services.map(({ typeName }) => [typeName, isServing] as const),
    ...Object.entries(parts).map(([name, healthy]) => [name, async () => healthy()] as const),
  ]);
  target.service(Health, healthService(checks));
  const reflectionInfo = reflection([...services, Health, ServerReflection, ServerReflectionAlpha]);
  target.service(ServerReflection, { serverReflectionInfo: reflectionInfo });
  target.service(ServerReflectionAlpha, { serverReflectionInfo: alphaReflection(reflectionInfo) });
}

const ping = promptStatement('rpc_ping', 'select');

/** Whether Postgres answers within a few seconds. */
export async function postgresAnswers(pool: Pool): Promise<boolean> {
  return run(pool, ping).then(
    () => true,
    () => false,
  );
}
