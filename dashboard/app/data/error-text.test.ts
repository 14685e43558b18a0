import { Code, ConnectError } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { failure, REASONS, type Reason } from '../../../common/contract/errors.ts';
import { first as de } from '../messages/de/first.ts';
import { first as en } from '../messages/en/first.ts';
import { errorText } from './error-text.ts';
import { fieldErrors } from './field-errors.ts';
import { isPermanent, recoveryInterval } from './queries.ts';

test('the core’s sentences are shown without names of fields, and in German where a reason is given', () => {
  const hostname = failure('INVALID_FIELD', 'hostname: must be only a hostname, such as qr.example.com.');
  expect(errorText(hostname, en)).toBe('Must be only a hostname, such as qr.example.com.');
  expect(errorText(hostname, de)).toMatch(/^Bitte geben Sie nur einen Hostnamen ein/);
  expect(errorText(failure('INVALID_FIELD', 'title: is required.'), de)).toBe('Bitte ausfüllen.');
  const zone = failure('INVALID_FIELD', 'time_zone: berlin is not in the IANA time zone database.');
  expect(errorText(zone, en)).toBe('berlin is not in the IANA time zone database.');
  expect(errorText(zone, de)).toBe('„berlin“ ist keine Zeitzone der IANA-Datenbank.');
  const own = failure('INVALID_FIELD', 'hostname: go.example is the platform itself.');
  expect(errorText(own, en)).toBe('go.example is the platform itself.');
  const large = failure('INVALID_FIELD', 'policy: must have at most 60,000 bytes; this one has 60,001.');
  expect(errorText(large, de)).toBe('Hat mehr als 60.000 Bytes, nämlich 60.001.');
  const label = failure('INVALID_FIELD', 'variants: the label 1,000 is used twice.');
  expect(errorText(label, de)).toBe('Die Bezeichnung „1,000“ kommt zweimal vor.');
  // A reason that is newer than these pages.
  expect(errorText(failure('BURST_LIMIT', 'Wait for 5 seconds.'), de)).toBe('Wait for 5 seconds.');
  const other = failure('INVALID_FIELD', 'since: must be a time.');
  expect(errorText(other, de)).toBe('Eine Angabe ist ungültig (since: must be a time.)');
  const missing = failure('NOT_FOUND', 'There is no such code on this account.');
  expect(errorText(missing, en)).toBe('There is no such code on this account.');
  expect(errorText(missing, de)).toBe('Das gibt es in diesem Konto nicht (mehr).');
  expect(errorText(failure('QR_LIMIT_REACHED', '…', { limit: '50' }), de)).toContain('50');
  expect(errorText(failure('ROLE_REQUIRED', '…', { role: 'admin' }), de)).toContain('„Verwalten“');
  expect(errorText(failure('UNAVAILABLE', '…'), de)).toBe(de.common.unavailable);
  const open = failure('UNAVAILABLE', 'Too many exports of this account are open.', { limit: '4' });
  expect(errorText(open, de)).toBe(de.common.tooManyCalls);
});

/** Reasons that members are never given: of API keys, of REST, of internal services, and of mistakes in the pages. */
const OF_OTHERS: readonly Reason[] = [
  ...(['MALFORMED_BODY', 'REQUEST_TIMEOUT', 'BODY_TOO_LARGE', 'TOO_MANY_FAILURES'] as const),
  ...(['BUSINESS_PLAN_REQUIRED', 'BURST_LIMIT', 'QUOTA_EXHAUSTED'] as const),
  ...(['INVALID_SERVICE_TOKEN', 'INTERNAL_METHOD'] as const),
  ...(['INVALID_IDEMPOTENCY_KEY', 'IDEMPOTENCY_KEY_REUSED'] as const),
];

test('sentences are about fields, of lists and parameters about the whole', () => {
  const fieldOf = (field: string) => [
    ...fieldErrors(failure('INVALID_FIELD', `${field}: is required.`), en.common.invalid).keys(),
  ];
  expect(fieldOf('policy.rules[0].name')).toEqual(['policy.rules[0].name']);
  expect(fieldOf('policy.rules[0].when.languages[1]')).toEqual(['policy.rules[0].when.languages']);
  expect(fieldOf('policy.parameters["utm_source"]')).toEqual(['policy.parameters']);
});

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
