import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError } from '@connectrpc/connect';
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';

/** The representation of a reason: in gRPC and Connect, in REST, and as the `code` of some 403 bodies. */
interface Representation {
  readonly rpc: Code;
  readonly http: number;
  readonly code?: string;
}

/**
 * All errors that Signpost returns. The reason is sent as `google.rpc.ErrorInfo.reason`; the sentence is written where
 * the error is raised, because it names what was wrong. Source: docs/contract.md, "Errors".
 */
export const REASONS = {
  /** The body is not a JSON object. */
  MALFORMED_BODY: { rpc: Code.InvalidArgument, http: 400 },
  /** A field or parameter violates its rule; the sentence names it. */
  INVALID_FIELD: { rpc: Code.InvalidArgument, http: 400 },
  /** A PATCH without any field that can be changed. */
  NO_FIELDS: { rpc: Code.InvalidArgument, http: 400 },
  UNKNOWN_FOLDER: { rpc: Code.InvalidArgument, http: 400 },
  /** The domain is not the account's, or its state does not allow creating codes. */
  UNKNOWN_DOMAIN: { rpc: Code.InvalidArgument, http: 400 },
  /** A cursor that was not issued to this account or for this list. */
  INVALID_CURSOR: { rpc: Code.InvalidArgument, http: 400 },
  INVALID_IDEMPOTENCY_KEY: { rpc: Code.InvalidArgument, http: 400 },
  /** No key, an unknown one, or a revoked one. */
  UNAUTHENTICATED: { rpc: Code.Unauthenticated, http: 401 },
  /** An internal caller without the service token, or with a wrong one. RPCs only. */
  INVALID_SERVICE_TOKEN: { rpc: Code.Unauthenticated, http: 401 },
  /** The plan has no API access. */
  BUSINESS_PLAN_REQUIRED: { rpc: Code.PermissionDenied, http: 403, code: 'business_plan_required' },
  /** The plan lacks a feature. */
  FEATURE_NOT_IN_PLAN: { rpc: Code.PermissionDenied, http: 403 },
  /** The method is for internal services, not for an API key or a member. */
  INTERNAL_METHOD: { rpc: Code.PermissionDenied, http: 403 },
  /** An internal caller names a member that the account does not have. RPCs only. */
  NOT_A_MEMBER: { rpc: Code.PermissionDenied, http: 403 },
  /** The role of the member does not allow this. RPCs only. Details: `role`, the one that would. */
  ROLE_REQUIRED: { rpc: Code.PermissionDenied, http: 403 },
  /** Details: `limit`, `used`. */
  QR_LIMIT_REACHED: { rpc: Code.ResourceExhausted, http: 403, code: 'qr_limit_reached' },
  /** The account has reached a limit that applies to all accounts. RPCs only. Details: `limit`. */
  LIMIT_REACHED: { rpc: Code.ResourceExhausted, http: 403 },
  /** More rows than the plan allows in one batch. */
  BATCH_LIMIT_EXCEEDED: { rpc: Code.ResourceExhausted, http: 403, code: 'batch_limit_exceeded' },
  /** The account has no such resource. */
  NOT_FOUND: { rpc: Code.NotFound, http: 404 },
  /** The name or address is taken. */
  ALREADY_EXISTS: { rpc: Code.AlreadyExists, http: 409 },
  /** The idempotency key was used with another body. */
  IDEMPOTENCY_KEY_REUSED: { rpc: Code.AlreadyExists, http: 409 },
  /** A request with the idempotency key is still running. */
  IDEMPOTENCY_KEY_IN_FLIGHT: { rpc: Code.Aborted, http: 409 },
  /** The code's type has no target, or no page, to change. */
  NO_TARGET: { rpc: Code.FailedPrecondition, http: 409 },
  /** The account would have members but no owner. RPCs only. */
  LAST_OWNER: { rpc: Code.FailedPrecondition, http: 409 },
  /** The target of the code is not in the version that the caller expected. RPCs only. Details: `version`. */
  TARGET_CHANGED: { rpc: Code.Aborted, http: 409 },
  NOTHING_TO_ENCODE: { rpc: Code.FailedPrecondition, http: 409 },
  /** The body did not arrive in time. Not a 408, which the contract does not list. */
  REQUEST_TIMEOUT: { rpc: Code.InvalidArgument, http: 400 },
  BODY_TOO_LARGE: { rpc: Code.OutOfRange, http: 413 },
  /** A message over its method's size limit, compressed or not. RPCs only. */
  MESSAGE_TOO_LARGE: { rpc: Code.ResourceExhausted, http: 413 },
  /** More than 25,000 rows. */
  TOO_MANY_ROWS: { rpc: Code.OutOfRange, http: 413 },
  /** More than 120 requests in 60 seconds. Details: `retry_after`, in seconds. */
  BURST_LIMIT: { rpc: Code.ResourceExhausted, http: 429 },
  /** The client's address has failed to authenticate too often. REST only. Details: `retry_after`, in seconds. */
  TOO_MANY_FAILURES: { rpc: Code.ResourceExhausted, http: 429 },
  /** The monthly quota is used up. */
  QUOTA_EXHAUSTED: { rpc: Code.ResourceExhausted, http: 429 },
  /** A method that does not exist, or a compression or form of call that its method does not support. */
  UNIMPLEMENTED: { rpc: Code.Unimplemented, http: 500 },
  /** A bug; the sentence does not describe it. */
  INTERNAL: { rpc: Code.Internal, http: 500 },
  /** The deadline of the call passed, or its message did not arrive in time. */
  DEADLINE_EXCEEDED: { rpc: Code.DeadlineExceeded, http: 503 },
  /** The caller disconnected or cancelled the call. */
  CANCELED: { rpc: Code.Canceled, http: 503 },
  /** The caller had stopped waiting when the call arrived. Nothing has changed, so it may be repeated at once. */
  TOO_LATE: { rpc: Code.Unavailable, http: 503 },
  /** The core is stopping, which ends a stream before its last message. RPCs only. */
  STOPPING: { rpc: Code.Unavailable, http: 503 },
  SHORT_CODE_NOT_ALLOCATED: { rpc: Code.Unavailable, http: 503 },
  IDEMPOTENCY_NOT_GUARANTEED: { rpc: Code.Unavailable, http: 503 },
  /** The DNS resolvers did not answer. RPCs only. Details: `hostname`. */
  RESOLVERS_UNAVAILABLE: { rpc: Code.Unavailable, http: 503 },
  /** The code's custom domain is failing or gone. */
  DOMAIN_NOT_RESOLVED: { rpc: Code.Unavailable, http: 503 },
  /** The core or Postgres is unavailable or too slow, or an account has too many streams open: details `limit`. */
  UNAVAILABLE: { rpc: Code.Unavailable, http: 503 },
} as const satisfies Record<string, Representation>;

export type Reason = keyof typeof REASONS;

/** `ErrorInfo.domain` of all errors of Signpost. */
const ERROR_DOMAIN = 'signpost';

/** A sentence about a field begins with its name: `name: must have at most 200 characters.` */
const ABOUT_FIELD = /^([\w.]+(?:\[[^\]]*\][\w.]*)*): (.+)$/s;

/** What the callers of a core are told while Postgres is unavailable, and those of a gateway while every core is. */
export const TEMPORARILY_UNAVAILABLE = 'The service is temporarily unavailable; try again.';

/** What callers are told of any error that the catalogue does not have. */
export const INTERNAL_ERROR = 'Something went wrong on our side; it has been logged.';

/**
 * The longest sentence, in characters. Over gRPC an error is in trailers, percent-encoded and twice in its details. By
 * default clients accept 8 KiB of them, and nghttp2 closes a connection with all its calls if they exceed 64 KiB.
 */
const MAX_SENTENCE = 400;
/** How much of the end of a longer one is kept: it says what is wrong with what was quoted before. */
const KEPT_END = 100;

/** After how long a call may be repeated if the error does not say, in seconds. */
const RETRY_S = 1;

/**
 * Creates an error for the caller: `sentence` is one that a person can act on; its middle is left out if what it quotes
 * makes it too long. `details` are figures that belong to the reason. Besides its ErrorInfo, an error about a field
 * carries a BadRequest, and one after which the call may be repeated a RetryInfo.
 */
export function failure(
  reason: Reason,
  sentence: string,
  details: Readonly<Record<string, string>> = {},
  cause?: unknown,
): ConnectError {
  const message = shortened(sentence);
  const { rpc } = REASONS[reason];
  const info = { desc: ErrorInfoSchema, value: { reason, domain: ERROR_DOMAIN, metadata: { ...details } } };
  const outgoing: NonNullable<ConstructorParameters<typeof ConnectError>[3]> = [info];
  const [, field, description] = (rpc === Code.InvalidArgument && ABOUT_FIELD.exec(message)) || [];
  if (field !== undefined && description !== undefined) {
    outgoing.push({ desc: BadRequestSchema, value: { fieldViolations: [{ field, description }] } });
  }
  const seconds = retryAfter(reason, details);
  if (seconds !== undefined) {
    outgoing.push({ desc: RetryInfoSchema, value: { retryDelay: durationFromMs(seconds * 1_000) } });
  }
  return new ConnectError(message, rpc, undefined, outgoing, cause);
}

function shortened(sentence: string): string {
  if (sentence.length <= MAX_SENTENCE) return sentence;
  const start = sentence.slice(0, MAX_SENTENCE - 1 - KEPT_END);
  return `${start}…${sentence.slice(-KEPT_END)}`.toWellFormed();
}

/** In how many seconds the same call may succeed; undefined if it never will by waiting. */
function retryAfter(reason: Reason, { retry_after: stated }: Readonly<Record<string, string>>): number | undefined {
  if (stated !== undefined) return Number(stated);
  if (reason === 'TOO_LATE') return 0;
  // The expected version never comes back.
  if (reason === 'TARGET_CHANGED') return undefined;
  const { rpc } = REASONS[reason];
  return rpc === Code.Unavailable || rpc === Code.Aborted ? RETRY_S : undefined;
}

/**
 * Reads reason, sentence and details of an error that `failure` created, here or at the other end. Any other error is
 * INTERNAL.
 */
export function readFailure(error: unknown): {
  reason: Reason;
  message: string;
  details: Readonly<Record<string, string>>;
} {
  if (error instanceof ConnectError) {
    const info = error.findDetails(ErrorInfoSchema).find(({ domain }) => domain === ERROR_DOMAIN);
    if (info && isReason(info.reason)) {
      return { reason: info.reason, message: error.rawMessage, details: info.metadata };
    }
  }
  return { reason: 'INTERNAL', message: INTERNAL_ERROR, details: {} };
}

/** Whether the catalogue has this reason. */
export function isReason(reason: string): reason is Reason {
  return Object.hasOwn(REASONS, reason);
}
