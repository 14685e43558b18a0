import { ConnectError } from '@connectrpc/connect';
import { type ErrorInfo, ErrorInfoSchema } from '../../../proto/gen/google/rpc/error_details_pb.ts';

/** The reason that the core gives, `google.rpc.ErrorInfo.reason`; undefined for errors of other origin. */
export function reasonOf(error: unknown): string | undefined {
  return errorInfo(error)?.reason;
}

/** The reason with its details, `google.rpc.ErrorInfo`; undefined for errors of other origin. */
export function errorInfo(error: unknown): ErrorInfo | undefined {
  return ConnectError.from(error).findDetails(ErrorInfoSchema)[0];
}
