import type { DescService } from '@bufbuild/protobuf';
import type { Interceptor, ServiceImpl } from '@connectrpc/connect';
import type { Tls } from './tls.ts';

/** Takes what a room implements. Methods that are left out answer `unimplemented`. */
export interface Services {
  service<Service extends DescService>(service: Service, implementation: Partial<ServiceImpl<Service>>): unknown;
}

/** Hands a server every service; called once for each of the two servers. */
export type RegisterServices = (services: Services) => void;

/** What a server is started with. */
export interface ServerOptions {
  readonly host: string;
  readonly port: number;
  readonly register: RegisterServices;
  readonly interceptors: Interceptor[];
  readonly tls?: Tls | undefined;
}

/** A server that listens. */
export interface Listening {
  readonly port: number;
  /** Takes no more calls, lets those in hand end, and resolves; after `graceMs` they are cut off. */
  stop(graceMs: number): Promise<void>;
}

/** The largest message that the servers read: a batch of 3,500,000 bytes of JSON with room to spare. */
export const MAX_MESSAGE_BYTES = 8 * 1024 * 1024;

/** The longest a caller may ask a call to take, in ms. */
export const MAX_TIMEOUT_MS = 10 * 60_000;
