import { INTERNAL_ERROR, REASONS, TEMPORARILY_UNAVAILABLE } from '../../../common/contract/errors.ts';
import { MAX_ROWS, tooManyRows } from '../../../common/contract/limits.ts';
import type { ErrorBody } from '../../http/error-body.ts';
import { MAX_BATCH_BODY, MAX_BATCH_BODY_BYTES, MAX_BODY, MAX_BODY_BYTES } from '../body/request-limits.ts';
import type { Schema } from './openapi-types.ts';

/** The headers of the monthly quota. */
export const RATE = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'];

/** An error as OpenAPI's example: what causes it, what to do, and its body. */
interface ErrorExample {
  readonly summary: string;
  readonly description: string;
  readonly value: ErrorBody;
}

const error = (summary: string, description: string, value: ErrorBody): ErrorExample => ({
  summary,
  description,
  value,
});

/**
 * All errors of the endpoints, by status and by a name for each cause; those of malformed HTTP are not among them. A
 * test provokes most of them.
 */
export const ERROR_EXAMPLES = {
  400: {
    malformed_json: error('The body is not JSON.', 'Correct the body where the sentence points.', {
      error: "The body is not valid JSON: expected property name or '}' at line 1, column 2.",
    }),
    invalid_field: error(
      'A field has the wrong type or breaks its rule, or a required one is missing.',
      'Correct the named field.',
      {
        error: 'target_url: is required.',
      },
    ),
    unknown_domain: error(
      'The domain is not the account’s, or not ready: a code requires a verified one, a batch a live one.',
      'Use a domain that is ready, or omit `domain_id`.',
      { error: 'domain_id: must be a domain of this account that is verified, live or failing.' },
    ),
    idempotency_key: error('The idempotency key is empty, too long, or not ASCII.', 'Send a UUID, for example.', {
      error: 'Idempotency-Key must be 1 to 255 visible ASCII characters.',
    }),
    unknown_folder: error('The filter names a folder that does not exist.', 'List the folders.', {
      error: 'folder: no folder of this account has this id or name.',
    }),
    invalid_cursor: error('The cursor was not issued for this list.', 'Start again without a cursor.', {
      error: 'cursor: was not issued by this service for this list.',
    }),
    no_fields: error('The change has no field that can be changed.', 'Send at least one of the named fields.', {
      error: 'Nothing to change: send at least one of target_url, name, paused, folder, tags.',
    }),
    unknown_format: error('`format` is neither `png` nor `svg`.', 'Ask for `png` or `svg`.', {
      error: 'format: must be one of png, svg.',
    }),
    unknown_status: error('`status` is not known.', 'Use one of the named values.', {
      error: 'status: must be one of pending, created, failed, skipped.',
    }),
    no_rows: error('The batch has no rows.', 'Send at least one.', { error: 'rows: must contain at least 1 item.' }),
  },
  401: {
    invalid_key: error(
      'The key is missing, unknown or revoked.',
      'Send `Authorization: Bearer sk_live_…` with the current key.',
      { error: 'This API key is not valid.' },
    ),
  },
  403: {
    business_plan_required: error('The plan has no API.', 'Change to a business plan.', {
      error: 'API access requires a business plan.',
      code: 'business_plan_required',
    }),
    no_batches: error('The plan has no batches.', 'Change the plan.', { error: 'Batches are not part of this plan.' }),
    no_images: error('The plan has no images.', 'Change the plan.', { error: 'Images are not part of this plan.' }),
    qr_limit_reached: error('The account has as many codes as its plan allows.', 'Delete codes, or change the plan.', {
      error: 'This account has 1000 of its 1000 QR codes; delete some or change the plan.',
      code: 'qr_limit_reached',
      limit: 1_000,
      used: 1_000,
    }),
    batch_limit_exceeded: error(
      'The batch has more rows than the plan allows in one.',
      'Split it, and send the parts one after another.',
      {
        error: 'A batch of this account may have at most 1000 rows, this one has 1001.',
        code: 'batch_limit_exceeded',
      },
    ),
  },
  404: {
    no_such_code: error('The account has no such code, or it was deleted.', 'Check the id.', {
      error: 'There is no such code on this account.',
    }),
    no_such_batch: error('The account has no such batch.', 'Check the id.', {
      error: 'There is no such batch on this account.',
    }),
  },
  409: {
    key_reused: error(
      'The idempotency key was used for something else (without `Retry-After`).',
      'Generate a new key for each creation, and retry with the same bytes.',
      { error: 'This Idempotency-Key was used with a different request.' },
    ),
    key_in_flight: error(
      'The first request with this key is still running (with `Retry-After`).',
      'Retry with the same key after as many seconds as `Retry-After` says; a batch may take 20 s.',
      { error: 'A request with this Idempotency-Key is still running.' },
    ),
    no_target: error(
      'The code is static or a landing page, which has no target: nothing was changed.',
      'Change the target of dynamic codes only.',
      {
        error: 'Only dynamic codes have a target that can be changed.',
      },
    ),
    nothing_to_encode: error('The code has nothing to encode.', 'Request images of other codes.', {
      error: 'This code has nothing to encode.',
    }),
  },
  413: {
    too_large: error(`The body is larger than ${MAX_BODY}.`, 'A valid code is far smaller: check what you send.', {
      error: `The body may have at most ${MAX_BODY_BYTES} bytes.`,
    }),
    batch_too_large: error(`The body is larger than ${MAX_BATCH_BODY}.`, 'Split it into sequential batches.', {
      error: `The body may have at most ${MAX_BATCH_BODY_BYTES} bytes.`,
    }),
    too_many_rows: error(
      `The batch has more than ${MAX_ROWS.toLocaleString('en')} rows.`,
      'Split it into sequential batches.',
      {
        error: tooManyRows(MAX_ROWS + 1),
      },
    ),
  },
  429: {
    burst: error(
      'The key made more than 120 requests in 60 seconds.',
      'Wait for as many seconds as `Retry-After` says.',
      {
        error: 'More than 120 requests in 60 seconds; try again in 7 s.',
      },
    ),
    quota: error(
      'The quota of the month is used up (without `Retry-After`).',
      'Wait for the next month, or change the plan.',
      {
        error: 'The 50000 requests of this month are used up; the next month begins on 2026-12-01.',
      },
    ),
    address: error(
      'Too many requests from this address had a wrong key.',
      'Correct the key, and wait for as many seconds as `Retry-After` says.',
      { error: 'Requests from this address failed to authenticate too often; try again in 20 s.' },
    ),
    in_progress: error(
      'Too many requests from this address are waiting for their responses.',
      'Wait for responses before you send more requests.',
      { error: 'Too many requests from this address are in progress.' },
    ),
    pipelined: error(
      'Too many requests on one connection were sent before earlier ones were answered.',
      'Send a request once the one before it is answered, or use several connections.',
      { error: 'Too many pipelined requests: at most 100 of a connection may be pending.' },
    ),
  },
  500: {
    internal: error('The service failed.', 'Report the `X-Request-Id` of the response.', {
      error: INTERNAL_ERROR,
    }),
  },
  503: {
    unavailable: error(
      'The service is temporarily unavailable.',
      'Retry after as many seconds as `Retry-After` says; POST with the same `Idempotency-Key`.',
      { error: TEMPORARILY_UNAVAILABLE },
    ),
    no_short_code: error('No free short code was found.', 'Retry.', {
      error: 'No free short code was found; try again.',
    }),
    key_not_stored: error('Idempotency could not be guaranteed.', 'Retry with the same key.', {
      error: 'The idempotency key could not be stored; try again.',
    }),
    domain_not_resolved: error('The code’s custom domain does not resolve.', 'Correct its DNS, or retry later.', {
      error: "The code's custom domain does not resolve at the moment; try again.",
    }),
  },
} as const satisfies Readonly<Record<number, Readonly<Record<string, ErrorExample>>>>;

/** The errors that an endpoint lists, by status, in addition to those of every endpoint. */
export type ErrorCases = {
  readonly [Status in keyof typeof ERROR_EXAMPLES]?: readonly (keyof (typeof ERROR_EXAMPLES)[Status])[];
};

/** The headers of errors by status. */
export const ERROR_HEADERS: Readonly<Record<keyof typeof ERROR_EXAMPLES, readonly string[]>> = {
  400: RATE,
  401: ['WWW-Authenticate'],
  403: RATE,
  404: RATE,
  409: RATE,
  413: RATE,
  429: [...RATE, 'Retry-After'],
  500: RATE,
  503: ['Retry-After'],
};

/** The errors that every endpoint can return. */
export const EVERYWHERE = {
  401: ['invalid_key'],
  429: ['burst', 'quota', 'address', 'in_progress', 'pipelined'],
  500: ['internal'],
  503: ['unavailable'],
} as const satisfies ErrorCases;

/** The body of every error. */
export const errorSchema: Schema = {
  type: 'object',
  description: 'Every error.',
  required: ['error'],
  properties: {
    error: { type: 'string', description: 'One sentence that a person can act on.' },
    code: {
      type: 'string',
      enum: Object.values(REASONS).flatMap((reason) => ('code' in reason ? reason.code : [])),
      description: 'On some 403s.',
    },
    limit: { type: 'integer', description: 'With `qr_limit_reached`: codes allowed.' },
    used: { type: 'integer', description: 'With `qr_limit_reached`: codes in use.' },
  },
};
