import { ConnectError } from '@connectrpc/connect';
import { BadRequestSchema } from '../../../proto/gen/google/rpc/error_details_pb.ts';
import type { FirstMessages } from '../messages/index.ts';

/** Sentences about fields, by the name of the field in the API: `landing_page.links[0].url`. */
export type FieldErrors = Readonly<Partial<Record<string, string>>>;

/**
 * What the core says about single fields of a request, by the path of the field, without the position of an item:
 * `policy.rules[0].when.languages`. `say`: makes a sentence for the reader of a field and the core's sentence about it.
 */
export function fieldErrors(error: unknown, say: FirstMessages['common']['invalid']): ReadonlyMap<string, string> {
  const [request] = ConnectError.from(error).findDetails(BadRequestSchema);
  return new Map(
    request?.fieldViolations.map(({ field, description }) => [
      field.replace(/\[[^\]]*\]$/, ''),
      say(field, description),
    ]),
  );
}
