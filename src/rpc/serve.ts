import type { DescMethod, DescService } from '@bufbuild/protobuf';
import type { Interceptor, ServiceImpl } from '@connectrpc/connect';
import type { Pool } from 'pg';
import type { Logger } from 'pino';
import { promptStatement, run } from '../../common/postgres/sql.ts';
import { fairQueue } from '../../common/runtime/fair-queue.ts';
import { Health } from '../../proto/gen/grpc/health/v1/health_pb.ts';
import { ServerReflection } from '../../proto/gen/grpc/reflection/v1/reflection_pb.ts';
import { ServerReflection as ServerReflectionAlpha } from '../../proto/gen/grpc/reflection/v1alpha/reflection_pb.ts';
import { access } from '../access/interceptor.ts';
import { requirementsOf } from '../access/requirements.ts';
import type { ServiceTokens } from '../access/service-token.ts';
import { serveConnect } from './connect-server.ts';
import { serveGrpc } from './grpc-server.ts';
import { healthService, shared } from './health.ts';
import { fewImagesAtOnce } from './image-queue.ts';
import { observe } from './observe.ts';
import { alphaReflection, reflection } from './reflection.ts';
import type { Listening, RegisterServices, Services } from './services.ts';
import type { Tls } from './tls.ts';
import { validate } from './validate.ts';

/** Both servers of a core. */
export interface Servers {
  readonly connectPort: number;
  readonly grpcPort: number;
  /** Takes no more calls and lets those in hand end, for at most `graceMs`. */
  stop(graceMs: number): Promise<void>;
}

/**
 * Large messages that are received and read at a time: with all that is made of one, some 50 MB each. A caller has two
 * at most, so that slow ones do not keep others waiting.
 */
const LARGE_MESSAGES = { concurrency: 16, concurrencyPerCaller: 2, maxWaiting: 500, items: 'large messages' };

/**
 * Serves the rooms' services, health and reflection on both servers, behind the same gate, which observes and judges a
 * call before its message is read, and the same interceptors: observed, judged, images in turn, validated, in this
 * order. Refuses to start when a method states no requirements.
 */
export async function serve(options: {
  host: string;
  connectPort: number;
  grpcPort: number;
  register: RegisterServices;
  pool: Pool;
  tokens: ServiceTokens;
  /** Undefined: both servers speak cleartext, and no certificate lets anybody in. */
  tls?: Tls | undefined;
  /** Other parts of this process that health tells of by their names: whether each works. */
  parts?: Readonly<Record<string, () => boolean>>;
  logger: Logger;
}): Promise<Servers> {
  const implemented: [DescService, Partial<ServiceImpl<DescService>>][] = [];
  const target: Services = {
    service: (service, implementation) => implemented.push([service, implementation as never]),
  };
  options.register(target);
  const named = implemented.map(([service]) => service);
  const methods = new Map(
    named.flatMap((service) => service.methods.map((method) => [`${service.typeName}/${method.name}`, method])),
  );
  for (const method of methods.values()) requirementsOf(method);

  let serving = true;
  const postgresAnswers = shared(() => answers(options.pool));
  const answering = async () => serving && (await postgresAnswers());
  const parts = Object.entries(options.parts ?? {}).map(([name, works]) => [name, async () => works()] as const);
  const known = new Map([['', answering], ...named.map(({ typeName }) => [typeName, answering] as const), ...parts]);
  target.service(Health, healthService(known));
  const described = reflection([...named, Health, ServerReflection, ServerReflectionAlpha]);
  target.service(ServerReflection, { serverReflectionInfo: described });
  target.service(ServerReflectionAlpha, { serverReflectionInfo: alphaReflection(described) });
  const register = (target: Services) => {
    // Made once: what an implementation limits, it limits for both servers together.
    for (const [service, implementation] of implemented) target.service(service, implementation);
  };
  const observer = observe(options.logger);
  const methodNamed = (name: string): DescMethod | undefined => methods.get(name);
  const { admit, interceptor: judged } = access({ ...options, methodNamed });
  const interceptors: Interceptor[] = [observer.interceptor, judged, fewImagesAtOnce(), validate];
  const servers: Listening[] = [];
  const stop = async (graceMs: number) => {
    serving = false;
    await Promise.all(servers.map((server) => server.stop(graceMs)));
  };
  try {
    const { host, tls, logger } = options;
    const shared = {
      host,
      tls,
      logger,
      register,
      gate: observer.gate(admit),
      interceptors,
      largeMessages: fairQueue(LARGE_MESSAGES),
    };
    const connect = await serveConnect({ ...shared, port: options.connectPort });
    servers.push(connect);
    const grpc = await serveGrpc({ ...shared, port: options.grpcPort });
    servers.push(grpc);
    return { connectPort: connect.port, grpcPort: grpc.port, stop };
  } catch (error) {
    await stop(0);
    throw error;
  }
}

const ANSWERS = promptStatement('rpc_answers', 'select');

async function answers(pool: Pool): Promise<boolean> {
  return run(pool, ANSWERS).then(
    () => true,
    () => false,
  );
}
