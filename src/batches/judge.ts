import { setImmediate } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import type { Pool } from 'pg';
import type { BatchRowInput } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { CreateCodeRequestSchema } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { expectValid } from '../access/validator.ts';
import type { IsPlatformHost } from '../codes/platform-hosts.ts';
import { readTags } from '../codes/tags.ts';
import { readTargets } from '../codes/target-url.ts';
import { asFailure } from '../contract/as-failure.ts';
import { newUuid } from '../contract/ids.ts';

/** Longest name that a caller may give to the thing that a code is glued to. Source: decision "Batches". */
const MAX_EXTERNAL_REF = 128;

/** Rows that are judged before others get a turn of the event loop: some milliseconds. */
const SLICE = 200;

/** A row as it is kept: what was sent, and what becomes of it. */
export interface JudgedRow {
  readonly input: BatchRowInput;
  /** What can be a folder, of what was sent. */
  readonly folder: string | null;
  /** What can be tags, each once. */
  readonly tags: readonly string[];
  /** UUID of the code that it becomes; null when it fails. */
  readonly codeId: string | null;
  /** Why it fails. */
  readonly problem: string | null;
}

/** Judges every row alone, in their order; the ids of their codes rise with it. */
export async function judge(
  pool: Pool,
  isPlatformHost: IsPlatformHost,
  inputs: readonly BatchRowInput[],
): Promise<readonly JudgedRow[]> {
  const judged: JudgedRow[] = [];
  for (let start = 0; start < inputs.length; start += SLICE) {
    const slice = inputs.slice(start, start + SLICE);
    const targets = await readTargets(
      pool,
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
        folder: input.folder !== undefined && canBeLabel(input.folder) ? input.folder : null,
        tags: ('tags' in read ? read.tags : input.tags).filter(canBeLabel),
        codeId: problem === undefined ? newUuid() : null,
        problem: problem ?? null,
      });
    }
    await setImmediate();
  }
  return judged;
}

/** A label that Postgres can't even look for costs the label only, like every other one that can be none. */
function canBeLabel(reference: string): boolean {
  return !reference.includes('\0');
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
