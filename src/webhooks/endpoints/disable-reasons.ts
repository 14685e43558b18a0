/**
 * Why an endpoint is disabled, as sentences for its owner. The dashboard shows them in the reader's language: see
 * `dashboard/app/messages/de/core-sentences.ts`.
 */
export const DISABLE_REASONS = {
  switchedOff: 'It was switched off.',
  gone: 'It answered 410 Gone.',
  testFailed: 'Its test event failed.',
  failedForDays: 'All deliveries failed for five days.',
} as const;
