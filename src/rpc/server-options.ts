import type { DescService } from '@bufbuild/protobuf';
import type { HandlerContext, Interceptor, ServiceImpl } from '@connectrpc/connect';
import type { Logger } from 'pino';
import type { FairQueue } from '../../common/queues/fair-queue.ts';
import type { Tls } from './tls.ts';

/** Registers the implementation of a service. Methods that are left out answer `unimplemented`. */
export interface Services {
  service<Service extends DescService>(service: Service, implementation: Partial<ServiceImpl<Service>>): unknown;
}

/** Registers every service with its implementation. */
export type RegisterServices = (services: Services) => void;

/**
 * Admits a call by its metadata alone, or throws: a server reads nothing of the message before. Must be called only
 * once per call, which it meters.
 */
export type Gate = (context: HandlerContext) => Promise<void>;

/** Options of both servers. */
export interface ServerOptions {
  readonly host: string;
  readonly port: number;
  readonly register: RegisterServices;
  readonly gate: Gate;
  readonly interceptors: Interceptor[];
  /** Fair queue, by caller, in which large messages are received and stored; shared by both servers. */
  readonly largeMessages: FairQueue;
  readonly tls?: Tls | undefined;
  readonly logger: Logger;
}

/** A listening server. */
export interface ListeningServer {
  readonly port: number;
  /** From now on each HTTP/1.1 connection is closed after its next response. */
  drain(): void;
  /** Rejects new calls and resolves once running ones have finished; after `graceMs` they are cut off. */
  stop(graceMs: number): Promise<void>;
}

/** How long the message of an admitted call may take to arrive, in ms. */
export const RECEIVE_MS = 30_000;

/**
 * Maximum concurrent calls per connection; the rest wait in the client. A gateway uses one connection for all its
 * calls, of which batches take up to 20 s.
 */
export const MAX_STREAMS = 1_000;
