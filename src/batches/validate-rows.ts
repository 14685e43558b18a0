import { setImmediate } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import { isLonger } from '../../common/codes/is-longer.ts';
import { newUuid } from '../../common/contract/ids.ts';
import { MAX_LABEL_SPELLING } from '../../common/contract/limits.ts';
import type { Queryable } from '../../common/postgres/sql.ts';
import { slices } from '../../common/runtime/slices.ts';
import type { BatchRowInput } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { CreateCodeRequestSchema } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { violationSentence } from '../calls/validator.ts';
import type { IsPlatformHost } from '../codes/fields/platform-hosts.ts';
import { readTags } from '../codes/fields/tags.ts';
import { readTargets } from '../codes/fields/target-url.ts';
import { excerptStillInvalid, nulProblem } from '../db/storable.ts';

/** Longest `external_ref`, in characters. Source: docs/contract.md, "Batches". */
const MAX_EXTERNAL_REF = 128;

/**
 * Rows that are validated before the event loop may run other tasks, and about how many tags in them: some
 * milliseconds.
 */
const SLICE = { items: 200, size: 5_000 };

/** A row as it is stored: its input and the result of the validation. */
export interface ValidatedRow {
  readonly input: BatchRowInput;
  /** Trimmed, cut off where no label can match it any more, and with U+0080 for control characters; so are `tags`. */
  readonly folder: string | null;
  /** Without repeated ones (`readTags`); of a row with too many, the first. */
  readonly tags: readonly string[];
  /** UUID of the code to create; null if the row fails. */
  readonly codeId: string | null;
  /** Why the row fails; null if it does not. */
  readonly problem: string | null;
}

/** Validates every row by itself, in order; the ids of the codes ascend in this order. */
export async function validateRows(
  on: Queryable,
  isPlatformHost: IsPlatformHost,
  accountId: string,
  inputs: readonly BatchRowInput[],
): Promise<readonly ValidatedRow[]> {
  const validated: ValidatedRow[] = [];
  for (const slice of slices(inputs, SLICE, ({ tags }) => tags.length)) {
    const targets = await readTargets(
      on,
      isPlatformHost,
      accountId,
      slice.map(({ targetUrl }) => targetUrl ?? ''),
    );
    for (const [index, input] of slice.entries()) {
      const read = readTags(input.tags);
      const target = targets[index];
      const problem =
        input.fault ??
        fieldProblem(input) ??
        (target && 'problem' in target ? target.problem : undefined) ??
        read.problem;
      validated.push({
        input,
        folder: input.folder === undefined ? null : storedReference(input.folder.trim()),
        tags: read.tags.map(storedReference),
        codeId: problem === undefined ? newUuid() : null,
        problem: problem ?? null,
      });
    }
    await setImmediate();
  }
  return validated;
}

/** A trimmed reference to a label as it is stored: whole, if it may be one to an existing label. */
function storedReference(reference: string): string {
  return excerptStillInvalid(reference, MAX_LABEL_SPELLING);
}

/** The problem with the row's fields: those that follow the rules of single codes, and the batch's own. */
function fieldProblem(input: BatchRowInput): string | undefined {
  const { targetUrl = '', name, campaignType, externalRef } = input;
  const problem = nulProblem({ target_url: targetUrl, name, campaign_type: campaignType, external_ref: externalRef });
  if (problem !== undefined) return problem;
  if (externalRef !== undefined && isLonger(externalRef, MAX_EXTERNAL_REF)) {
    return `external_ref: must have at most ${MAX_EXTERNAL_REF} characters.`;
  }
  const code = create(CreateCodeRequestSchema, {
    targetUrl,
    ...(name === undefined ? {} : { name }),
    ...(campaignType === undefined ? {} : { campaignType }),
  });
  return violationSentence(CreateCodeRequestSchema, code);
}
