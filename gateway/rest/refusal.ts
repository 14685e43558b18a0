import type { DescMethod } from '@bufbuild/protobuf';
import type { CallOptions } from '@connectrpc/connect';
import type { Reason } from '../../common/contract/errors.ts';
import type { CoreClients } from '../core.ts';

/** A request that the gateway can't translate: the reason, and the sentence for the caller. */
export class Refusal extends Error {
  readonly reason: Reason;

  constructor(reason: Reason, sentence: string) {
    super(sentence);
    this.reason = reason;
  }
}

/**
 * Has the core admit and meter a refused request as the method that it was meant for, so that a bad key, a plan or a
 * limit comes first. Gives the error to answer with: the refusal as the core sent it back, or what came before it.
 * Source: docs/contract.md, "Idempotency".
 */
export async function refuse(
  core: CoreClients,
  method: DescMethod,
  { reason, message }: Refusal,
  options: CallOptions,
): Promise<unknown> {
  try {
    await core.admission.refuse({ method: fullName(method), reason, message }, options);
  } catch (error) {
    return error;
  }
  return new Error('the core let a refused request pass');
}

/** The name by which the core finds a method. */
export function fullName(method: DescMethod): string {
  return `${method.parent.typeName}/${method.name}`;
}
