import { reasonOf } from '../../data/error-reason.ts';
import { errorText } from '../../data/error-text.ts';
import type { Format } from '../../data/format.ts';
import type { Messages } from '../../messages/index.ts';
import { MAX_TARGETS } from './bulk-change.ts';
import { type BulkResult, hasFailed } from './bulk-result.ts';

/** What became of the codes of a change. `wasStopped`: by the person. */
export function resultText(result: BulkResult, wasStopped: boolean, messages: Messages, format: Format): string {
  const { bulk } = messages.codes;
  const { changed, unchanged, withoutTarget, failures, pending, error } = result;
  const isNothing = changed + pending + withoutTarget === 0 && !hasFailed(result) && !wasStopped;
  const sentences = [
    wasStopped ? bulk.stopped : '',
    changed > 0 ? bulk.done(changed, format.number(changed)) : '',
    pending > 0 ? bulk.pending(pending, format.number(pending)) : '',
    isNothing ? bulk.nothing : '',
    unchanged > 0 && !isNothing ? bulk.unchanged(unchanged, format.number(unchanged)) : '',
    withoutTarget > 0 ? bulk.withoutTarget(withoutTarget, format.number(withoutTarget)) : '',
    failures[0]
      ? `${bulk.failed(failures.length, format.number(failures.length))} ${messages.rowSentence(failures[0].message) || bulk.notFound}`
      : '',
    error === undefined ? '' : failureText(error, messages, format),
  ];
  return sentences.filter(Boolean).join(' ');
}

/** Why a change or an export broke off. */
export function failureText(error: unknown, messages: Messages, format: Format): string {
  const { bulk } = messages.codes;
  if (error instanceof RangeError) return bulk.tooManyTargets(format.number(MAX_TARGETS));
  return reasonOf(error) === 'FEATURE_NOT_IN_PLAN' ? bulk.notInPlan : errorText(error, messages);
}
