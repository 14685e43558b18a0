import { setImmediate } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import { newUuid } from '../../common/contract/ids.ts';
import type { Queryable } from '../../common/postgres/sql.ts';
import type { BatchRowInput } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { CreateCodeRequestSchema } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { asFailure } from '../access/as-failure.ts';
import { expectValid } from '../access/validator.ts';
import type { IsPlatformHost } from '../codes/platform-hosts.ts';
import { readTags } from '../codes/tags.ts';
import { readTargets } from '../codes/target-url.ts';

/** Longest name that a caller may give to the thing that a code is glued to. Source: docs/contract.md, "Batches". */
const MAX_EXTERNAL_REF = 128;

/** Rows that are judged before others get a turn of the event loop: some milliseconds. */
const SLICE = 200;

/** A row as it is kept: what was sent, and what becomes of it. */
export interface JudgedRow {
  readonly input: BatchRowInput;
  /** As it was sent, but without NUL, as `tags`. */
  readonly folder: string | null;
  /** Each once. */
  readonly tags: readonly string[];
  /** UUID of the code that it becomes; null when it fails. */
  readonly codeId: string | null;
  /** Why it fails. */
  readonly problem: string | null;
}

/** Judges every row alone, in their order; the ids of their codes rise with it. */
export async function judge(
  on: Queryable,
  isPlatformHost: IsPlatformHost,
  inputs: readonly BatchRowInput[],
): Promise<readonly JudgedRow[]> {
  const judged: JudgedRow[] = [];
  for (let start = 0; start < inputs.length; start += SLICE) {
    const slice = inputs.slice(start, start + SLICE);
    const targets = await readTargets(
      on,
      isPlatformHost,
      slice.map(({ targetUrl }) => targetUrl ?? ''),
    );
    for (const [index, input] of slice.entries()) {
      const read = readTags(input.tags);
      const target = targets[index];
      const problem =
        input.fault ??
        fieldProblem(input) ??
        (target && 'problem' in target ? target.problem : undefined) ??
        ('problem' in read ? read.problem : undefined);
      judged.push({
        input,
        folder: input.folder === undefined ? null : storable(input.folder),
        tags: ('tags' in read ? read.tags : input.tags).map(storable),
        codeId: problem === undefined ? newUuid() : null,
        problem: problem ?? null,
      });
    }
    await setImmediate();
  }
  return judged;
}

/** With another control character in the place of NUL, which Postgres can't store; neither can be in a label's name. */
function storable(reference: string): string {
  return reference.replaceAll('\0', '\u0001');
}

/** What is wrong with fields that a single code has by the same rules, and with the row's own. */
function fieldProblem(input: BatchRowInput): string | undefined {
  const { targetUrl = '', name, campaignType, externalRef } = input;
  if ([targetUrl, name, campaignType, externalRef].some((text) => text?.includes('\0'))) {
    return 'Text must not contain the NUL character.';
  }
  if (
    externalRef !== undefined &&
    externalRef.length > MAX_EXTERNAL_REF &&
    [...externalRef].length > MAX_EXTERNAL_REF
  ) {
    return `external_ref: must have at most ${MAX_EXTERNAL_REF} characters.`;
  }
  try {
    const code = create(CreateCodeRequestSchema, {
      targetUrl,
      ...(name === undefined ? {} : { name }),
      ...(campaignType === undefined ? {} : { campaignType }),
    });
    expectValid(CreateCodeRequestSchema, code);
    return undefined;
  } catch (error) {
    return asFailure(error).rawMessage;
  }
}
