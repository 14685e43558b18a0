import type { DescMessage, Message } from '@bufbuild/protobuf';
import { reflect } from '@bufbuild/protobuf/reflect';
import { ViolationsSchema } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js';
import { Code, ConnectError, type StreamRequest, type UnaryRequest } from '@connectrpc/connect';
import { failure, INTERNAL_ERROR, TEMPORARILY_UNAVAILABLE } from '../../common/contract/errors.ts';
import { kafkaProblem } from '../../common/log/kafka-refusals.ts';
import { isUnavailable } from '../../common/postgres/unavailable.ts';
import { ErrorInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';

/**
 * SQLSTATE of text that Postgres cannot store: NUL. Any text in a request may contain it, so it is handled here once;
 * where other errors would come first, `expectStorable` rejects it earlier.
 */
const UNREPRESENTABLE = '22021';

/** How much of a key of a map a sentence contains, in characters. */
const MAX_KEY = 64;

/** The end of a rule's sentence that says `1 characters` or `20 item(s)`. */
const COUNTED = /\b(\d+) (character|item)(?:s|\(s\))$/;

/** Starts of the libraries' sentences about what a caller sent, most of which they report as internal errors. */
const UNREADABLE = ['parse binary: ', 'Failed to decompress', 'decompression failed', 'received compressed envelope'];

/**
 * Converts any error to one of the catalogue, so that nothing internal (SQL, stack, host) reaches a caller. The
 * original error stays as `cause`, for the log. `request`: the one that failed, if it is known.
 */
export function asFailure(
  error: unknown,
  request?: Pick<UnaryRequest, 'stream' | 'method' | 'message'> | StreamRequest,
): ConnectError {
  if (error instanceof ConnectError) {
    if (error.findDetails(ErrorInfoSchema).length > 0) return error;
    if (UNREADABLE.some((start) => error.rawMessage.startsWith(start))) {
      return failure('INVALID_FIELD', 'The message cannot be decompressed or parsed.', {}, error);
    }
    switch (error.code) {
      case Code.InvalidArgument:
        return failure('INVALID_FIELD', violationSentence(error), {}, error);
      case Code.Unimplemented:
        return failure('UNIMPLEMENTED', `Not available: ${error.rawMessage.replace(/\.$/, '')}.`, {}, error);
      case Code.Canceled:
        return failure('CANCELED', 'The call was cancelled.', {}, error);
      case Code.DeadlineExceeded:
        return failure('DEADLINE_EXCEEDED', 'The deadline of the call has passed.', {}, error);
      default:
        return internal(error);
    }
  }
  if (isUnrepresentable(error)) {
    const field = !request || request.stream ? undefined : fieldWithNul(request.method.input, request.message);
    const subject = field === undefined ? 'Text must' : `${field}: must`;
    return failure('INVALID_FIELD', `${subject} not contain the NUL character.`, {}, error);
  }
  // Before the next, as kafkajs's errors have the same causes. Only methods for internal services use the log.
  const problem = kafkaProblem(error);
  if (problem !== undefined) return failure('UNAVAILABLE', problem, {}, error);
  if (isUnavailable(error)) return failure('UNAVAILABLE', TEMPORARILY_UNAVAILABLE, {}, error);
  return internal(error);
}

/** Errors of Postgres have a severity, in the classes of pg and of the ORM alike. */
function isUnrepresentable(error: unknown): boolean {
  return error instanceof Error && 'severity' in error && 'code' in error && error.code === UNREPRESENTABLE;
}

/** The path of the first field with a NUL in its text. */
function fieldWithNul(schema: DescMessage, message: Message): string | undefined {
  const values = reflect(schema, message);
  for (const field of values.fields) {
    const inner = (value: unknown) => {
      if (typeof value === 'string') return value.includes('\0') ? field.name : undefined;
      if (!field.message) return undefined;
      const path = fieldWithNul(field.message, (value as { message: Message }).message);
      return path === undefined ? undefined : `${field.name}.${path}`;
    };
    if (!values.isSet(field)) continue;
    const value: unknown = values.get(field);
    const items = field.fieldKind === 'list' ? [...(value as Iterable<unknown>)] : [value];
    for (const item of items) {
      const path = inner(item);
      if (path !== undefined) return path;
    }
  }
  return undefined;
}

function internal(cause: unknown): ConnectError {
  return failure('INTERNAL', INTERNAL_ERROR, {}, cause);
}

/** The first violated rule as a sentence that names its field. */
function violationSentence(error: ConnectError): string {
  const violation = error.findDetails(ViolationsSchema)[0]?.violations[0];
  if (!violation) return error.rawMessage;
  const field = violation.field?.elements
    .map(({ fieldName, subscript }) =>
      subscript.case ? `${fieldName}[${String(subscript.value).slice(0, MAX_KEY)}]` : fieldName,
    )
    .join('.');
  const rule = (violation.message || 'is not valid').replace(
    COUNTED,
    (_, count, one) => `${count} ${one}${count === '1' ? '' : 's'}`,
  );
  return field ? `${field}: ${rule}.` : `${rule}.`;
}
