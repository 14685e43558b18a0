import type { DescMethod } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
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

/** The deadline of most calls that are not streams, in ms. */
const DEADLINE_MS = 60_000;

/** Methods that go through everything of an account, of some days or of a topic. */
const LONG_METHODS = ['AuditEvents', 'AuditScans', 'CloseAccount', 'DeleteAccountScans'];

/** How much earlier than the client the core may notice that a deadline has passed, in ms. */
const TOLERANCE_MS = 1_000;

const failuresOfChanges = new WeakSet<ConnectError>();

/** Whether an error is that of a call that may have changed something, also if no response arrived. */
export function mayHaveChanged(error: ConnectError): boolean {
  return failuresOfChanges.has(error);
}

/** Calls the core at `baseUrl`. Most calls that are not streams have a deadline, which the error names. */
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
      const timeoutMs = timeoutOfCall ?? deadlineOf(method);
      const start = performance.now();
      const signals = [signal, signalOfCall].filter((each) => each !== undefined);
      try {
        return await transport.unary(method, AbortSignal.any(signals), timeoutMs, header, input, values);
      } catch (error) {
        const failed = withDeadline(ConnectError.from(error), timeoutMs, performance.now() - start);
        if (method.idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS) failuresOfChanges.add(failed);
        throw failed;
      }
    },
    // All streams are reads.
    stream: (...call) => transport.stream(...call),
  };
}

function deadlineOf({ name }: DescMethod): number | undefined {
  // It publishes for as long as that takes, and a part of it is of no use.
  if (name === 'RepublishEvents') return undefined;
  return LONG_METHODS.includes(name) ? MAX_TIMEOUT_MS : DEADLINE_MS;
}

/** Names the deadline in the error of a call that took as long. The core itself gives a message less time to arrive. */
function withDeadline(error: ConnectError, timeoutMs: number | undefined, elapsedMs: number): ConnectError {
  if (error.code !== Code.DeadlineExceeded || timeoutMs === undefined) return error;
  if (error.details.length > 0 && elapsedMs < timeoutMs - TOLERANCE_MS) return error;
  const sentence = `The core did not answer within ${Math.ceil(timeoutMs / 1_000)} s`;
  return new ConnectError(sentence, Code.DeadlineExceeded, undefined, undefined, error);
}
