import { ViolationsSchema } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js';
import { Code, ConnectError } from '@connectrpc/connect';
import { DatabaseError } from 'pg';
import { failure } from '../../common/contract/errors.ts';
import { isUnavailable } from '../../common/postgres/unavailable.ts';
import { ErrorInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';

/** SQLSTATE of text that Postgres can't keep: NUL. Any text of a request may hold it, so it is told here once. */
const UNREPRESENTABLE = '22021';

/** How the library begins what it says of bytes that are no message, which it takes for a defect of ours. */
const UNPARSED = 'parse binary: ';

/**
 * Any error as one of the catalogue: nothing internal (SQL, stack, host) reaches a caller. What was thrown stays as
 * `cause`, for the log.
 */
export function asFailure(error: unknown): ConnectError {
  if (error instanceof ConnectError) {
    if (error.findDetails(ErrorInfoSchema).length > 0) return error;
    switch (error.code) {
      case Code.InvalidArgument:
        return failure('INVALID_FIELD', violationSentence(error), {}, error);
      case Code.Unimplemented:
        return failure('UNIMPLEMENTED', 'This method is not available.', {}, error);
      case Code.Canceled:
      case Code.DeadlineExceeded:
        // The caller is gone or waits no longer: the protocol's own codes tell it best.
        return error;
      case Code.ResourceExhausted:
        // Only the RPC libraries tell it so, of what is larger than they are to read.
        return new ConnectError('The message is too large.', error.code, undefined, undefined, error);
      default:
        if (!error.rawMessage.startsWith(UNPARSED)) return internal(error);
        return failure('INVALID_FIELD', 'The message can not be read.', {}, error);
    }
  }
  if (error instanceof DatabaseError && error.code === UNREPRESENTABLE) {
    return failure('INVALID_FIELD', 'Text must not contain the NUL character.', {}, error);
  }
  if (isUnavailable(error)) return failure('UNAVAILABLE', 'The service is away for a moment; try again.', {}, error);
  return internal(error);
}

function internal(cause: unknown): ConnectError {
  return failure('INTERNAL', 'Something went wrong on our side; it has been logged.', {}, cause);
}

/** The first broken rule as a sentence that names its field. */
function violationSentence(error: ConnectError): string {
  const violation = error.findDetails(ViolationsSchema)[0]?.violations[0];
  if (!violation) return error.rawMessage;
  const field = violation.field?.elements.map(({ fieldName }) => fieldName).join('.') ?? '';
  const rule = violation.message || 'is not valid';
  return field ? `${field}: ${rule}.` : `${rule}.`;
}
