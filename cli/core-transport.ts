import type { Transport } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';

/** The address of a core, and the headers of every call. */
export interface CoreOptions {
  readonly baseUrl: string;
  readonly headers: Readonly<Record<string, string>>;
  /** PEM files for the connection. */
  readonly tls?: Readonly<Record<string, Buffer>>;
}

/** Calls the core at `baseUrl`. */
export function coreTransport({ baseUrl, headers, tls }: CoreOptions): Transport {
  return createConnectTransport({
    baseUrl,
    httpVersion: '1.1',
    interceptors: [
      (next) => (request) => {
        for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
        return next(request);
      },
    ],
    ...(tls ? { nodeOptions: tls } : {}),
  });
}
