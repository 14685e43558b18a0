import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import { createValidator, violationsToProto } from '@bufbuild/protovalidate';
import { Code, ConnectError } from '@connectrpc/connect';
import { asFailure } from './as-failure.ts';

/**
 * Compiles the constraints of a message on first use. Stops at the first violation, the only one that an error names: a
 * list of a million invalid values had as many, which took minutes.
 */
export const validator = createValidator({ failFast: true });

/** Throws, as the validating interceptor does, when a message violates a constraint of its proto file. */
export function expectValid<Schema extends DescMessage>(schema: Schema, message: MessageShape<Schema>): void {
  const violation = violationOf(schema, message);
  if (violation) throw violation;
}

/** The sentence about the first violated constraint; undefined if the message is valid. */
export function violationSentence<Schema extends DescMessage>(
  schema: Schema,
  message: MessageShape<Schema>,
): string | undefined {
  const violation = violationOf(schema, message);
  return violation && asFailure(violation).rawMessage;
}

function violationOf<Schema extends DescMessage>(
  schema: Schema,
  message: MessageShape<Schema>,
): ConnectError | undefined {
  const result = validator.validate(schema, message);
  if (result.kind === 'valid') return undefined;
  if (result.kind === 'error') throw result.error;
  const [value, desc] = violationsToProto(result.violations);
  return new ConnectError(result.error.message, Code.InvalidArgument, undefined, [{ desc, value }], result.error);
}
