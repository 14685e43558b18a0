import { ConnectError } from '@connectrpc/connect';
import { BadRequestSchema } from '../../../proto/gen/google/rpc/error_details_pb.ts';

/** What the core says about single fields of a request, by the path of the field: `policy.rules[0].when.weekly`. */
export function fieldErrors(error: unknown): ReadonlyMap<string, string> {
  const [request] = ConnectError.from(error).findDetails(BadRequestSchema);
  return new Map(request?.fieldViolations.map(({ field, description }) => [field, description]));
}
