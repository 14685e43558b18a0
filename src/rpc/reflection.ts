import {
  create,
  type DescExtension,
  type DescFile,
  type DescService,
  fromBinary,
  type MessageInitShape,
  toBinary,
} from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { Code, type MethodImpl } from '@connectrpc/connect';
import { failure } from '../../common/contract/errors.ts';
import { file_google_rpc_error_details } from '../../proto/gen/google/rpc/error_details_pb.ts';
import {
  type ServerReflection,
  type ServerReflectionRequest,
  ServerReflectionRequestSchema,
  ServerReflectionResponseSchema,
} from '../../proto/gen/grpc/reflection/v1/reflection_pb.ts';
import {
  type ServerReflection as AlphaReflection,
  ServerReflectionRequestSchema as AlphaRequestSchema,
  ServerReflectionResponseSchema as AlphaResponseSchema,
} from '../../proto/gen/grpc/reflection/v1alpha/reflection_pb.ts';

type ReflectionInfo = MethodImpl<(typeof ServerReflection)['method']['serverReflectionInfo']>;

/** Limits of reflection, which may be open to anyone. */
export interface ReflectionLimits {
  /** Concurrent calls. */
  readonly most: number;
  /** The longest duration of a call, in ms. */
  readonly lastsMs: number;
  /** Requests of a call. */
  readonly requests: number;
}

const LIMITS: ReflectionLimits = { most: 100, lastsMs: 10 * 60_000, requests: 10_000 };

/**
 * Server reflection (grpc.reflection.v1; v1alpha has the same messages) from the descriptors of the generated code.
 * `@grpc/reflection` loses dependencies across packages.
 */
export function reflection(services: readonly DescService[], limits: ReflectionLimits = LIMITS): ReflectionInfo {
  // Details of errors are in no method's messages.
  const files = closure([...services.map(({ file }) => file), file_google_rpc_error_details]);
  const byName = new Map(files.map((file) => [fileName(file), file]));
  const bySymbol = new Map(files.flatMap((file) => symbolsOf(file).map((symbol) => [symbol, file])));
  const extensions = files.flatMap((file) => file.extensions);
  const extensionsOf = (type: string) => extensions.filter(({ extendee }) => extendee.typeName === type);

  let open = 0;
  return async function* (requests, { signal }) {
    if (open >= limits.most) throw failure('LIMIT_REACHED', 'Too many clients use reflection; try again later.');
    open++;
    try {
      yield* answers(bounded(requests, limits, signal));
    } finally {
      open--;
    }
  };

  async function* answers(requests: AsyncIterable<ServerReflectionRequest>): AsyncGenerator<Answer> {
    for await (const originalRequest of requests) {
      const { messageRequest } = originalRequest;
      const base = { validHost: originalRequest.host, originalRequest };
      const respond = (file: DescFile | undefined) =>
        file ? { ...base, messageResponse: descriptors(file) } : { ...base, messageResponse: notFound() };

      switch (messageRequest.case) {
        case 'listServices': {
          const service = services.map(({ typeName }) => ({ name: typeName }));
          yield { ...base, messageResponse: { case: 'listServicesResponse', value: { service } } };
          break;
        }
        case 'fileByFilename':
          yield respond(byName.get(messageRequest.value));
          break;
        case 'fileContainingSymbol':
          yield respond(bySymbol.get(messageRequest.value));
          break;
        case 'fileContainingExtension': {
          const { containingType, extensionNumber } = messageRequest.value;
          yield respond(extensionsOf(containingType).find(({ number }) => number === extensionNumber)?.file);
          break;
        }
        case 'allExtensionNumbersOfType': {
          const extensionNumber = extensionsOf(messageRequest.value).map(({ number }) => number);
          const value = { baseTypeName: messageRequest.value, extensionNumber };
          yield { ...base, messageResponse: { case: 'allExtensionNumbersResponse', value } };
          break;
        }
        default:
          yield { ...base, messageResponse: notFound() };
      }
    }
  }
}

/** The requests of a call up to its limits; it then ends as if its client had ended it. */
async function* bounded<Request>(
  requests: AsyncIterable<Request>,
  { lastsMs, requests: most }: ReflectionLimits,
  signal: AbortSignal,
): AsyncGenerator<Request> {
  const ended = AbortSignal.any([signal, AbortSignal.timeout(lastsMs)]);
  const end = new Promise<undefined>((resolve) => ended.addEventListener('abort', () => resolve(undefined)));
  const iterator = requests[Symbol.asyncIterator]();
  for (let n = 0; n < most && !ended.aborted; n++) {
    const next = await Promise.race([iterator.next(), end]);
    if (!next || next.done) return;
    yield next.value;
  }
}

type Answer = MessageInitShape<typeof ServerReflectionResponseSchema>;

type AlphaReflectionInfo = MethodImpl<(typeof AlphaReflection)['method']['serverReflectionInfo']>;

/** The same for clients that only support v1alpha, whose messages equal those of v1. */
export function alphaReflection(info: ReflectionInfo): AlphaReflectionInfo {
  return async function* (requests, context) {
    const translated = (async function* () {
      for await (const request of requests) {
        yield fromBinary(ServerReflectionRequestSchema, toBinary(AlphaRequestSchema, request));
      }
    })();
    for await (const response of info(translated, context)) {
      const bytes = toBinary(ServerReflectionResponseSchema, create(ServerReflectionResponseSchema, response));
      yield fromBinary(AlphaResponseSchema, bytes);
    }
  };
}

/** Serialized files: encoding those that most others import takes milliseconds. */
const encoded = new WeakMap<DescFile, Uint8Array>();

function encode(file: DescFile): Uint8Array {
  const bytes = encoded.get(file) ?? toBinary(FileDescriptorProtoSchema, file.proto);
  encoded.set(file, bytes);
  return bytes;
}

function descriptors(file: DescFile) {
  const fileDescriptorProto = closure([file]).map(encode);
  return { case: 'fileDescriptorResponse' as const, value: { fileDescriptorProto } };
}

function notFound() {
  return { case: 'errorResponse' as const, value: { errorCode: Code.NotFound, errorMessage: 'Not found.' } };
}

/** The files and everything they import, each once. */
function closure(files: readonly DescFile[]): DescFile[] {
  const seen = new Set<DescFile>();
  const visit = (file: DescFile): void => {
    if (seen.has(file)) return;
    seen.add(file);
    file.dependencies.forEach(visit);
  };
  files.forEach(visit);
  return [...seen];
}

/** protobuf-es names files without their extension. */
function fileName(file: DescFile): string {
  return `${file.name}.proto`;
}

function symbolsOf({ services, messages, enums, extensions }: DescFile): string[] {
  const methods = services.flatMap((service) => service.methods.map(({ name }) => `${service.typeName}.${name}`));
  const nested: DescFile['messages'] = messages.flatMap((message) => [message, ...message.nestedMessages]);
  const types: readonly (DescService | DescExtension | { typeName: string })[] = [
    ...services,
    ...nested,
    ...enums,
    ...nested.flatMap(({ nestedEnums }) => nestedEnums),
    ...extensions,
  ];
  return [...methods, ...types.map(({ typeName }) => typeName)];
}
