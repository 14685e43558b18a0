import type { ErrorBody } from './errors.ts';
import type { Schema } from './openapi-types.ts';

/** The headers of the monthly quota. */
export const RATE = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'];

interface ErrorDescription {
  /** The description for endpoints without their own. */
  readonly description: string;
  readonly example: ErrorBody;
  readonly headers: readonly string[];
}

/** All error statuses. */
export const ERRORS: Readonly<Record<number, ErrorDescription>> = {
  400: { description: 'Bad input.', example: { error: 'target_url is required.' }, headers: RATE },
  401: {
    description: 'Missing or invalid key.',
    example: { error: 'This API key is not valid.' },
    headers: ['WWW-Authenticate'],
  },
  403: {
    description: 'The plan does not allow it.',
    example: {
      error: 'API access requires a business plan.',
      code: 'business_plan_required',
    },
    headers: RATE,
  },
  404: { description: 'Not found.', example: { error: 'There is no such code on this account.' }, headers: RATE },
  409: {
    description: 'Conflict.',
    example: { error: 'This Idempotency-Key was used with a different request.' },
    headers: RATE,
  },
  413: { description: 'Too large.', example: { error: 'The body may have at most 1048576 bytes.' }, headers: RATE },
  429: {
    description:
      'The monthly quota is used up; or, with `Retry-After`, more than 120 requests in 60 seconds, or too many requests ' +
      'from this address that failed to authenticate.',
    example: { error: 'More than 120 requests in 60 seconds; try again in 7 s.' },
    headers: [...RATE, 'Retry-After'],
  },
  500: {
    description: 'Server error.',
    example: { error: 'Something went wrong on our side; it has been logged.' },
    headers: RATE,
  },
  503: {
    description: 'The service is temporarily unavailable; retry.',
    example: { error: 'The service is temporarily unavailable; try again.' },
    headers: ['Retry-After'],
  },
};

/** The statuses that every endpoint can return. */
export const EVERYWHERE = [401, 429, 500, 503];

/** The body of every error. */
export const errorSchema: Schema = {
  type: 'object',
  description: 'Every error.',
  required: ['error'],
  properties: {
    error: { type: 'string', description: 'One sentence that a person can act on.' },
    code: {
      type: 'string',
      enum: ['business_plan_required', 'qr_limit_reached', 'batch_limit_exceeded'],
      description: 'On some 403s.',
    },
    limit: { type: 'integer', description: 'With `qr_limit_reached`: codes allowed.' },
    used: { type: 'integer', description: 'With `qr_limit_reached`: codes in use.' },
  },
};
