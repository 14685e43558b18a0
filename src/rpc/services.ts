import type { DescService } from '@bufbuild/protobuf';
import type { HandlerContext, Interceptor, ServiceImpl } from '@connectrpc/connect';
import type { Logger } from 'pino';
import type { FairQueue } from '../../common/runtime/fair-queue.ts';
import type { Tls } from './tls.ts';

/** Takes what a room implements. Methods that are left out answer `unimplemented`. */
export interface Services {
  service<Service extends DescService>(service: Service, implementation: Partial<ServiceImpl<Service>>): unknown;
}

/** Hands over every service with what implements it. */
export type RegisterServices = (services: Services) => void;

/**
 * Admits a call or throws, by its metadata alone: a server reads nothing of the message before. May be called once for a
 * call, which it meters.
 */
export type Gate = (context: HandlerContext) => Promise<void>;

/** What a server is started with. */
export interface ServerOptions {
  readonly host: string;
  readonly port: number;
  readonly register: RegisterServices;
  readonly gate: Gate;
  readonly interceptors: Interceptor[];
  /** Large messages are received and read in it, by whoever calls; shared by both servers. */
  readonly largeMessages: FairQueue;
  readonly tls?: Tls | undefined;
  readonly logger: Logger;
}

/** A server that listens. */
export interface Listening {
  readonly port: number;
  /** Takes no more calls, lets those in hand end, and resolves; after `graceMs` they are cut off. */
  stop(graceMs: number): Promise<void>;
}

/** The longest a caller may ask a call to take, in ms. */
export const MAX_TIMEOUT_MS = 10 * 60_000;

/** How long the message of an admitted call may take to arrive, in ms. */
export const RECEIVE_MS = 30_000;

/**
 * Calls that a client may have going on one connection; the rest wait in the client. A gateway has one connection for
 * all that it is asked, of which batches take up to 20 s.
 */
export const MAX_STREAMS = 1_000;
