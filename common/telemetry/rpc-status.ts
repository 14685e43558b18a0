import { Code } from '@connectrpc/connect';

/** The name of a status in gRPC, such as `NOT_FOUND`: `rpc.response.status_code` of OpenTelemetry's conventions. */
export function codeName(code: Code): string {
  return Code[code].replace(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase();
}
