import { promisify } from 'node:util';
import { brotliCompress, constants } from 'node:zlib';
import type { DescMethod, Message } from '@bufbuild/protobuf';
import { Code, ConnectError, createContextKey, createContextValues, type Interceptor } from '@connectrpc/connect';
import {
  assertByteStreamRequest,
  type Compression,
  compressionNegotiate,
  encodeEnvelope,
  envelopeDecompress,
  readAllBytes,
  transformSplitEnvelope,
  type UniversalServerRequest,
} from '@connectrpc/connect/protocol';
import { compressionBrotli, compressionGzip } from '@connectrpc/connect-node';
import { failure } from '../../common/contract/errors.ts';
import type { FairQueue } from '../../common/queues/fair-queue.ts';
import { callerKey, fairnessKey } from '../access/caller.ts';
import { untilSlotReleased } from '../calls/message-slot.ts';
import { limitOf, readingFailure } from './message-limits.ts';
import { readJsonMessage, readMessage } from './read-message.ts';
import { RECEIVE_MS } from './server-options.ts';

const compressBrotli = promisify(brotliCompress);

/**
 * The level at which Brotli takes as much CPU as gzip: 60 ms for an answer of 2.4 MB. At the library's level, the
 * highest, it took 3.7 s in one of the process's four threads, where logging in to Postgres waits for it too.
 */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } };

/** Supported compressions of requests and responses. */
export const COMPRESSIONS: Compression[] = [
  compressionGzip,
  { ...compressionBrotli, compress: (bytes) => compressBrotli(bytes, BROTLI) },
];

/** Messages of a call that have been read and not yet passed on, in order. */
const readKey = createContextKey<Message[]>([], { description: 'read messages' });

/**
 * Replaces the body of a request so that its messages are read here, once the library asks for them: within the
 * method's size limit, queued if large, within a timeout, with values counted before anything is created, and in parts.
 * The library would read them whole, without these limits and before all interceptors. It gets an empty message in
 * place of each one, and `substituteMessages` puts back the one that was read. Nothing of the body is read before
 * admission.
 */
export function receive(
  request: UniversalServerRequest,
  method: DescMethod,
  largeMessages: FairQueue,
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
    const { request: compression, error } = compressionNegotiate(
      COMPRESSIONS,
      request.header.get(encoding),
      null,
      'accept-encoding',
    );
    if (error) throw new ConnectError(error.rawMessage, error.code);
    const bytes = single ? inTime(body) : body;
    if (!protocol) {
      const whole = await readAllBytes(bytes, limit.bytes, request.header.get('content-length'));
      yield compression ? await compression.decompress(whole, limit.bytes) : whole;
      return;
    }
    let envelopes = 0;
    for await (const envelope of transformSplitEnvelope(limit.bytes)(bytes)) {
      if (single && ++envelopes > 1)
        throw new ConnectError('The call contains more than one message.', Code.Unimplemented);
      yield (await envelopeDecompress(envelope, compression, limit.bytes)).data;
    }
    if (single && envelopes === 0) throw new ConnectError('The call contains no message.', Code.Unimplemented);
  }

  const read: Message[] = [];
  contextValues.set(readKey, read);
  const readOne = async (bytes: Uint8Array) => {
    signal.throwIfAborted();
    const reading = { values: limit.values, signal };
    read.push(await (json ? readJsonMessage : readMessage)(method.input, bytes, reading));
  };
  const empty = Buffer.from(json ? '{}' : '');
  const placeholder = protocol ? encodeEnvelope(0, empty) : empty;

  /** Errors of reading pass no interceptor of the library: they are converted here. */
  async function* placeholdersOrFailure(): AsyncGenerator<Uint8Array> {
    try {
      yield* placeholders();
    } catch (error) {
      throw readingFailure(signal.aborted ? ConnectError.from(signal.reason, Code.Canceled) : error, limit);
    }
  }

  async function* placeholders(): AsyncGenerator<Uint8Array> {
    if (!limit.isQueued) {
      for await (const bytes of incoming()) {
        await readOne(bytes);
        yield placeholder;
      }
      return;
    }
    const isRead = Promise.withResolvers<void>();
    const turn = largeMessages(fairnessKey(contextValues.get(callerKey)), signal, async () => {
      for await (const bytes of incoming()) await readOne(bytes);
      const ended = untilSlotReleased(contextValues, signal);
      isRead.resolve();
      await ended;
    });
    turn.catch(isRead.reject);
    await isRead.promise;
    yield* read.map(() => placeholder);
  }

  const header = new Headers(request.header);
  header.delete(encoding);
  header.delete('content-length');
  return { ...request, contextValues, header, body: placeholdersOrFailure() };
}

/** The header in which each protocol names the compression of messages. */
const ENCODINGS = { grpc: 'grpc-encoding', connect: 'connect-content-encoding' } as const;

/** Puts back the messages that `receive` has read; must be the first interceptor. */
export const substituteMessages: Interceptor = (next) => (request) => {
  const read = request.contextValues.get(readKey);
  if (!request.stream) return next({ ...request, message: read.shift() ?? request.message });
  const { message: placeholders } = request;
  async function* messages() {
    for await (const placeholder of placeholders) yield read.shift() ?? placeholder;
  }
  return next({ ...request, message: messages() });
};

/** Fails when a message has not fully arrived in time; a pending read is abandoned. */
async function* inTime(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const late = Promise.withResolvers<never>();
  late.promise.catch(() => {});
  const timer = setTimeout(() => {
    late.reject(failure('DEADLINE_EXCEEDED', 'The message did not arrive in time.'));
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
