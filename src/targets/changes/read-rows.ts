import { setImmediate } from 'node:timers/promises';
import { create, toJson } from '@bufbuild/protobuf';
import type { Queryable } from '../../../common/postgres/sql.ts';
import { slices } from '../../../common/runtime/slices.ts';
import { type Policy, PolicySchema } from '../../../proto/gen/signpost/targets/v1/policy_pb.ts';
import { SetTargetRequestSchema, type TargetRowInput } from '../../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { violationSentence } from '../../calls/validator.ts';
import type { IsPlatformHost } from '../../codes/fields/platform-hosts.ts';
import { readTargets } from '../../codes/fields/target-url.ts';
import { nulProblem } from '../../db/storable.ts';
import { readPolicies } from '../policies.ts';
import type { REFERENCES } from './entities.ts';

/**
 * Rows that are validated before the event loop may run other tasks, and about how many values of their policies: a
 * value takes 4 µs, and a valid policy has up to 7,000.
 */
const SLICE = { items: 100, size: 2_000 };

/** What a row names its code by. */
export interface Reference {
  readonly kind: (typeof REFERENCES)[number];
  readonly text: string;
}

/** A row as it was sent, validated by itself. */
export interface ReadRow {
  readonly reference: Reference | undefined;
  /** Trimmed; null leaves it unchanged. */
  readonly targetUrl: string | null;
  /** A `Policy` in protobuf's JSON form, `{}` to remove it; null leaves it unchanged. */
  readonly policy: unknown;
  /** Why the row fails; undefined if it does not. */
  readonly problem: string | undefined;
}

/** Validates every row by itself, in order, without its code. */
export async function readRows(
  on: Queryable,
  isPlatformHost: IsPlatformHost,
  accountId: string,
  inputs: readonly TargetRowInput[],
): Promise<ReadRow[]> {
  const rows: ReadRow[] = [];
  for (const slice of slices(inputs, SLICE, ({ policy }) => valuesOf(policy))) {
    rows.push(...(await readSlice(on, isPlatformHost, accountId, slice)));
    await setImmediate();
  }
  return rows;
}

async function readSlice(
  on: Queryable,
  isPlatformHost: IsPlatformHost,
  accountId: string,
  inputs: readonly TargetRowInput[],
): Promise<ReadRow[]> {
  const problems = inputs.map(formProblem);
  const valid = inputs.filter((_, index) => problems[index] === undefined);
  const urls = valid.flatMap(({ targetUrl }) => targetUrl ?? []);
  const targets = (await readTargets(on, isPlatformHost, accountId, urls)).values();
  const requested = valid.flatMap(({ policy }) => policy ?? []);
  const policies = (
    requested.length === 0 ? [] : await readPolicies(on, isPlatformHost, accountId, requested)
  ).values();
  return inputs.map((input, index) => {
    const reference = referenceOf(input);
    const problem = problems[index];
    if (problem !== undefined) return { reference, targetUrl: null, policy: null, problem };
    const target = input.targetUrl === undefined ? undefined : targets.next().value;
    const policy = input.policy === undefined ? undefined : policies.next().value;
    return {
      reference,
      targetUrl: target && 'url' in target ? target.url : null,
      policy: policy && 'policy' in policy ? (policy.policy ? toJson(PolicySchema, policy.policy) : {}) : null,
      problem:
        (target && 'problem' in target ? target.problem : undefined) ??
        (policy && 'problem' in policy ? policy.problem : undefined),
    };
  });
}

/** How many values of a policy's lists are validated. */
function valuesOf(policy: Policy | undefined): number {
  let values = 0;
  for (const { when, outcome } of policy?.rules ?? []) {
    const variants = outcome?.kind.case === 'split' ? outcome.kind.value.variants : [];
    const lists = [when?.countries, when?.languages, when?.devices, when?.operatingSystems, variants];
    values += lists.reduce((sum, list) => sum + (list?.length ?? 0), 1);
  }
  return values;
}

function referenceOf({ code }: TargetRowInput): Reference | undefined {
  switch (code.case) {
    case 'id':
      return { kind: 'id', text: code.value };
    case 'shortCode':
      return { kind: 'short_code', text: code.value };
    case 'externalRef':
      return { kind: 'external_ref', text: code.value };
    default:
      return undefined;
  }
}

/** What is wrong with a row before its URLs are read. */
function formProblem(input: TargetRowInput): string | undefined {
  const reference = referenceOf(input);
  if (!reference) return 'Name the code by id, short_code or external_ref.';
  const problem = nulProblem({ [reference.kind]: reference.text });
  if (problem !== undefined) return problem;
  const { targetUrl, policy } = input;
  if (targetUrl === undefined && policy === undefined) return 'Set at least one of target_url and policy.';
  if (policy === undefined) return undefined;
  return violationSentence(SetTargetRequestSchema, create(SetTargetRequestSchema, { policy }));
}
