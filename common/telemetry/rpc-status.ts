import { Code } from '@connectrpc/connect';

/** `rpc.system.name` of OpenTelemetry's conventions. */
export type RpcSystem = 'connectrpc' | 'grpc';

/**
 * `rpc.response.status_code` of OpenTelemetry's conventions, as the protocol spells it: `NOT_FOUND` in gRPC,
 * `not_found` in Connect. `code`: undefined if the call succeeded.
 */
export function statusName(code: Code | undefined, system: RpcSystem): string {
  const name = code === undefined ? 'OK' : Code[code].replace(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase();
  return system === 'grpc' ? name : name.toLowerCase();
}
