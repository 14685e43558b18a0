import { Code, ConnectError, type Transport } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { MAX_TIMEOUT_MS } from '../common/contract/limits.ts';

/** The address of a core, and the headers of every call. */
export interface CoreOptions {
  readonly baseUrl: string;
  readonly headers: Readonly<Record<string, string>>;
  /** PEM files for the connection. */
  readonly tls?: Readonly<Record<string, Buffer>>;
  /** Ends calls that are not streams. */
  readonly signal?: AbortSignal | undefined;
}

/** The deadline of a call that is neither a stream nor one of `LONG_METHODS`, in ms. */
const DEADLINE_MS = 60_000;

/** Methods that go through everything of an account, of some days or of a topic. */
const LONG_METHODS = ['AuditEvents', 'RepublishEvents', 'AuditScans', 'CloseAccount', 'DeleteAccountScans'];

/** Calls the core at `baseUrl`. Calls that are not streams have a deadline, which the error names. */
export function coreTransport({ baseUrl, headers, tls, signal }: CoreOptions): Transport {
  const transport = createConnectTransport({
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
  return {
    async unary(method, signalOfCall, timeoutOfCall, header, input, values) {
      const timeoutMs = timeoutOfCall ?? (LONG_METHODS.includes(method.name) ? MAX_TIMEOUT_MS : DEADLINE_MS);
      const signals = [signal, signalOfCall].filter((each) => each !== undefined);
      try {
        return await transport.unary(method, AbortSignal.any(signals), timeoutMs, header, input, values);
      } catch (error) {
        if (ConnectError.from(error).code !== Code.DeadlineExceeded) throw error;
        const sentence = `The core did not answer within ${Math.ceil(timeoutMs / 1_000)} s`;
        throw new ConnectError(sentence, Code.DeadlineExceeded, undefined, undefined, error);
      }
    },
    stream: (...call) => transport.stream(...call),
  };
}
