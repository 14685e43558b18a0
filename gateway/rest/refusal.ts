import type { DescMethod } from '@bufbuild/protobuf';
import type { Reason } from '../../common/contract/errors.ts';
import { methodName } from '../../common/contract/method-name.ts';
import type { CoreClients } from '../core/clients.ts';
import type { CallOptions } from '../core/transport.ts';

/**
 * A request that the gateway can't convert to an RPC: the reason, the sentence for the caller, and for a batch the
 * number of its rows, if it is known.
 */
export class Refusal extends Error {
  readonly reason: Reason;
  readonly rows: number;

  constructor(reason: Reason, sentence: string, rows = 0) {
    super(sentence);
    this.reason = reason;
    this.rows = rows;
  }
}

/**
 * Has the core authenticate and meter a refused request as a call of its method, so that errors of the key, the plan or
 * a limit take precedence. Returns the error to respond with: one of those, or the refusal as the core returned it.
 * Source: docs/contract.md, "Who may call" and "Idempotency".
 */
export async function refuse(
  core: CoreClients,
  method: DescMethod,
  { reason, message, rows }: Refusal,
  options: CallOptions,
): Promise<unknown> {
  try {
    await core.admission.refuse({ method: methodName(method), reason, message, rows }, options);
  } catch (error) {
    return error;
  }
  return new Error('the core accepted a refused request');
}
