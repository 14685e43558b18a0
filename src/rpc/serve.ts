import type { DescMethod, DescService } from '@bufbuild/protobuf';
import type { Interceptor } from '@connectrpc/connect';
import type { Pool } from 'pg';
import type { Logger } from 'pino';
import { Health } from '../../proto/gen/grpc/health/v1/health_pb.ts';
import { ServerReflection } from '../../proto/gen/grpc/reflection/v1/reflection_pb.ts';
import { ServerReflection as ServerReflectionAlpha } from '../../proto/gen/grpc/reflection/v1alpha/reflection_pb.ts';
import { access } from '../access/interceptor.ts';
import { requirementsOf } from '../access/requirements.ts';
import type { ServiceTokens } from '../access/service-token.ts';
import { promptStatement, run } from '../db/sql.ts';
import { fewImagesAtOnce } from '../images/few-at-once.ts';
import { serveConnect } from './connect-server.ts';
import { serveGrpc } from './grpc-server.ts';
import { healthService } from './health.ts';
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
 * Serves the rooms' services, health and reflection on both servers, behind the same interceptors: observed, images in
 * turn, judged, validated, in this order. Refuses to start when a method states no requirements.
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
  const services = servicesIn(options.register);
  const methods = new Map(
    services.flatMap((service) => service.methods.map((method) => [`${service.typeName}/${method.name}`, method])),
  );
  for (const method of methods.values()) requirementsOf(method);

  let serving = true;
  const register = (target: Services) => {
    options.register(target);
    const answering = async () => serving && (await answers(options.pool));
    const named = services.map(({ typeName }) => [typeName, answering] as const);
    const parts = Object.entries(options.parts ?? {}).map(([name, works]) => [name, async () => works()] as const);
    target.service(Health, healthService(new Map([['', answering], ...named, ...parts])));
    const described = reflection([...services, Health, ServerReflection, ServerReflectionAlpha]);
    target.service(ServerReflection, { serverReflectionInfo: described });
    target.service(ServerReflectionAlpha, { serverReflectionInfo: alphaReflection(described) });
  };
  const interceptors: Interceptor[] = [
    observe(options.logger),
    fewImagesAtOnce(),
    access({ ...options, methodNamed: (name: string): DescMethod | undefined => methods.get(name) }),
    validate,
  ];
  const servers: Listening[] = [];
  const stop = async (graceMs: number) => {
    serving = false;
    await Promise.all(servers.map((server) => server.stop(graceMs)));
  };
  try {
    const shared = { host: options.host, tls: options.tls, register, interceptors };
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

function servicesIn(register: RegisterServices): DescService[] {
  const services: DescService[] = [];
  register({ service: (service) => services.push(service) });
  return services;
}

const ANSWERS = promptStatement('rpc_answers', 'select');

async function answers(pool: Pool): Promise<boolean> {
  return run(pool, ANSWERS).then(
    () => true,
    () => false,
  );
}
