import { ConnectError } from '@connectrpc/connect';
import { BadRequestSchema } from '../../../proto/gen/google/rpc/error_details_pb.ts';

/** Sentences about fields, by the field's name in the API: `target_url`, `landing_page.links[0].url`. */
export type FieldErrors = Readonly<Partial<Record<string, string>>>;

/** What the core says about the fields of a failed call; empty if the error is not about a field. */
export function fieldErrorsOf(error: unknown): FieldErrors {
  if (error === null || error === undefined) return {};
  const details = ConnectError.from(error).findDetails(BadRequestSchema);
  const violations = details.flatMap(({ fieldViolations }) => fieldViolations);
  return Object.fromEntries(violations.map(({ field, description }) => [field, description]));
}
