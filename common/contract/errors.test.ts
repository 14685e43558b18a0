import { Code } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';
import { failure, REASONS, type Reason } from './errors.ts';

test('every error has its reason, and an error about a field names it', () => {
  for (const reason of Object.keys(REASONS) as Reason[]) {
    expect(failure(reason, 'Sentence.').findDetails(ErrorInfoSchema)).toMatchObject([{ reason, domain: 'signpost' }]);
  }
  const [wrong] = failure('INVALID_FIELD', 'name: must be short.').findDetails(BadRequestSchema);
  expect(wrong?.fieldViolations).toMatchObject([{ field: 'name', description: 'must be short.' }]);
  expect(failure('INVALID_FIELD', 'Nothing to change: send a field.').findDetails(BadRequestSchema)).toEqual([]);
  expect(failure('NOT_FOUND', 'name: is not there.').findDetails(BadRequestSchema)).toEqual([]);
});

test('an error about a value of a map names its key', () => {
  const sentence = 'policy.parameters[utm-source x]: must be short.';
  expect(failure('INVALID_FIELD', sentence).findDetails(BadRequestSchema)[0]?.fieldViolations).toMatchObject([
    { field: 'policy.parameters[utm-source x]', description: 'must be short.' },
  ]);
});

test('the middle of a sentence that quotes something long is left out', () => {
  for (const quoted of ['x', 'é', '名', '😀', '[', ':']) {
    const { rawMessage } = failure('INVALID_FIELD', `name: ${quoted.repeat(100_000)} is too long.`);
    expect(rawMessage).toMatch(/^name: .+….+ is too long\.$/s);
    expect(rawMessage).toHaveLength(400);
    expect(rawMessage.isWellFormed()).toBe(true);
  }
});

test('an error after which the call may be repeated says when', () => {
  const seconds = (reason: Reason, details = {}) =>
    failure(reason, 'Sentence.', details).findDetails(RetryInfoSchema)[0]?.retryDelay?.seconds;
  expect(seconds('BURST_LIMIT', { retry_after: '17' })).toBe(17n);
  expect(seconds('TOO_LATE')).toBe(0n);
  for (const reason of Object.keys(REASONS) as Reason[]) {
    const { rpc } = REASONS[reason];
    const again = rpc === Code.Unavailable || reason === 'IDEMPOTENCY_KEY_IN_FLIGHT';
    if (reason !== 'TOO_LATE') expect([reason, seconds(reason)]).toEqual([reason, again ? 1n : undefined]);
  }
});
