import type { DescMethod, Message } from '@bufbuild/protobuf';
import { Code, ConnectError, createContextKey, createContextValues, type Interceptor } from '@connectrpc/connect';
import {
  assertByteStreamRequest,
  compressionNegotiate,
  encodeEnvelope,
  envelopeDecompress,
  readAllBytes,
  transformSplitEnvelope,
  type UniversalServerRequest,
} from '@connectrpc/connect/protocol';
import { compressionBrotli, compressionGzip } from '@connectrpc/connect-node';
import type { InTurn } from '../../common/runtime/fair-queue.ts';
import { callerKey, fairnessKey } from '../access/caller.ts';
import { limitOf } from './message-limits.ts';
import { readJsonMessage, readMessage } from './read-message.ts';
import { RECEIVE_MS } from './services.ts';

/** What requests and answers may be compressed with. */
export const COMPRESSIONS = [compressionGzip, compressionBrotli];

/** The messages of a call that have been read and not yet handed on, in their order. */
const readKey = createContextKey<Message[]>([], { description: 'read messages' });

/**
 * A request whose messages we read ourselves, once the library asks for them: within the limit of the method, in turn
 * when they are large, in time, counted before anything is made of them, and in parts. The library would read them
 * whole, without any such bound and before all interceptors; it gets an empty message in the place of each, and
 * `handOver` puts back the one that was read. Nothing of the body is touched before the call has been admitted.
 */
export function receive(
  request: UniversalServerRequest,
  method: DescMethod,
  largeMessages: InTurn,
): UniversalServerRequest {
  assertByteStreamRequest(request);
  const { body, signal, contextValues = createContextValues() } = request;
  const limit = limitOf(method);
  const single = method.methodKind === 'unary' || method.methodKind === 'server_streaming';
  const type = request.header.get('content-type') ?? '';
  const json = /[/+]json/i.test(type);
  const [, protocol] = /^application\/(grpc|connect)/i.exec(type) ?? [];
  const encoding = protocol ? ENCODINGS[protocol.toLowerCase() as keyof typeof ENCODINGS] : 'content-encoding';

  async function* incoming(): AsyncGenerator<Uint8Array> {
    const { request: compression, error } = compressionNegotiate(COMPRESSIONS, request.header.get(encoding), null, '');
    if (error) throw new ConnectError(error.rawMessage, error.code);
    const bytes = single ? inTime(body) : body;
    if (!protocol) {
      const whole = await readAllBytes(bytes, limit.bytes, request.header.get('content-length'));
      yield compression ? await compression.decompress(whole, limit.bytes) : whole;
      return;
    }
    let envelopes = 0;
    for await (const envelope of transformSplitEnvelope(limit.bytes)(bytes)) {
      if (single && ++envelopes > 1) throw new ConnectError('The call has more than one message.', Code.Unimplemented);
      yield (await envelopeDecompress(envelope, compression, limit.bytes)).data;
    }
  }

  const read: Message[] = [];
  contextValues.set(readKey, read);
  const readOne = async (bytes: Uint8Array) => {
    signal.throwIfAborted();
    const reading = { values: limit.values, signal };
    read.push(json ? readJsonMessage(method.input, bytes, reading) : await readMessage(method.input, bytes, reading));
  };
  const empty = Buffer.from(json ? '{}' : '');
  const inItsPlace = protocol ? encodeEnvelope(0, empty) : empty;

  async function* places(): AsyncGenerator<Uint8Array> {
    if (!limit.inTurn) {
      for await (const bytes of incoming()) {
        await readOne(bytes);
        yield inItsPlace;
      }
      return;
    }
    await largeMessages(fairnessKey(contextValues.get(callerKey)), signal, async () => {
      for await (const bytes of incoming()) await readOne(bytes);
    });
    yield* read.map(() => inItsPlace);
  }

  const header = new Headers(request.header);
  header.delete(encoding);
  header.delete('content-length');
  return { ...request, contextValues, header, body: places() };
}

/** In what header a protocol says how its messages are compressed. */
const ENCODINGS = { grpc: 'grpc-encoding', connect: 'connect-content-encoding' } as const;

/** Hands on the messages that `receive` has read; before all other interceptors. */
export const handOver: Interceptor = (next) => (request) => {
  const read = request.contextValues.get(readKey);
  if (!request.stream) return next({ ...request, message: read.shift() ?? request.message });
  const { message: places } = request;
  async function* messages() {
    for await (const place of places) yield read.shift() ?? place;
  }
  return next({ ...request, message: messages() });
};

/** Fails when not all of a message has arrived in time. What it waits for then is left alone. */
async function* inTime(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const late = Promise.withResolvers<never>();
  late.promise.catch(() => {});
  const timer = setTimeout(() => {
    late.reject(new ConnectError('The message has not arrived in time.', Code.DeadlineExceeded));
  }, RECEIVE_MS);
  const iterator = chunks[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await Promise.race([iterator.next(), late.promise]);
      if (next.done) return;
      yield next.value;
    }
  } finally {
    clearTimeout(timer);
  }
}
