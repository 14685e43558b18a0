import { Code, ConnectError } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { failure, REASONS, type Reason } from '../../../common/contract/errors.ts';
import { first as de } from '../messages/de/first.ts';
import { first as en } from '../messages/en/first.ts';
import { errorText } from './error-text.ts';
import { isPermanent, recoveryInterval } from './queries.ts';

test('the core’s sentences are shown without names of fields, and in German where a reason is given', () => {
  const hostname = failure('INVALID_FIELD', 'hostname: must be only a hostname, such as qr.example.com.');
  expect(errorText(hostname, en)).toBe('Must be only a hostname, such as qr.example.com.');
  expect(errorText(hostname, de)).toMatch(/^Bitte geben Sie nur einen Hostnamen ein/);
  expect(errorText(failure('INVALID_FIELD', 'title: is required.'), de)).toBe('Fehlt.');
  const other = failure('INVALID_FIELD', 'since: must be a time.');
  expect(errorText(other, de)).toBe('Eine Angabe ist ungültig (since: must be a time.)');
  const missing = failure('NOT_FOUND', 'There is no such code on this account.');
  expect(errorText(missing, en)).toBe('There is no such code on this account.');
  expect(errorText(missing, de)).toBe('Das gibt es in diesem Konto nicht (mehr).');
  expect(errorText(failure('QR_LIMIT_REACHED', '…', { limit: '50' }), de)).toContain('50');
  expect(errorText(failure('ROLE_REQUIRED', '…', { role: 'admin' }), de)).toContain('„Verwalten“');
  expect(errorText(failure('UNAVAILABLE', '…'), de)).toBe(de.common.unavailable);
});

/** Reasons that members are never given: of API keys, of REST, of internal services, and of mistakes in the pages. */
const OF_OTHERS: readonly Reason[] = [
  ...(['MALFORMED_BODY', 'REQUEST_TIMEOUT', 'BODY_TOO_LARGE', 'TOO_MANY_FAILURES'] as const),
  ...(['BUSINESS_PLAN_REQUIRED', 'BURST_LIMIT', 'QUOTA_EXHAUSTED'] as const),
  ...(['INVALID_SERVICE_TOKEN', 'INTERNAL_METHOD'] as const),
  ...(['INVALID_IDEMPOTENCY_KEY', 'IDEMPOTENCY_KEY_REUSED'] as const),
];

test('every reason why a call of a member fails is explained in German', () => {
  for (const reason of Object.keys(REASONS) as Reason[]) {
    if (OF_OTHERS.includes(reason)) continue;
    expect(errorText(failure(reason, 'name: in English.', { limit: '5' }), de), reason).not.toContain('English');
  }
  expect(errorText(new ConnectError('At most 50 calls.', Code.ResourceExhausted), de)).toBe(de.common.tooManyCalls);
});

test('queries that gave up recover if Signpost was unavailable, and permanent errors are not repeated', () => {
  const [missing, away] = [failure('NOT_FOUND', '…'), new ConnectError('…', Code.Unavailable)];
  expect([isPermanent(missing), isPermanent(away)]).toEqual([true, false]);
  expect(recoveryInterval({ state: { status: 'error', error: away } })).toBeGreaterThan(0);
  expect(recoveryInterval({ state: { status: 'error', error: missing } })).toBe(false);
  expect(recoveryInterval({ state: { status: 'success', error: null } })).toBe(false);
});
