import { isSpanContextValid, trace } from '@opentelemetry/api';
import { type Logger, pino, symbols } from 'pino';

/** SQLSTATE class 22 (data exceptions), whose messages quote values. */
const DATA_EXCEPTION = /^22...$/;

/** A statement with its values, which the ORM puts before Postgres's message. */
const STATEMENT = /^\s*(?:select|insert|update|delete|with|merge|copy|begin|commit)\b.* - /is;

/** Postgres's `detail`, which the ORM appends to the message: whole rows. */
const DETAIL = /\n - detail: .*/s;

/** The maximum number of causes that are logged. */
const MAX_CAUSES = 4;

/**
 * Opens the logger of a process; `base` is on every line. Errors are logged under `err`, without personal data. Lines
 * written in a span have its `trace_id` and `span_id`.
 */
export function openLogger(level: string, base: Readonly<Record<string, string>>): Logger {
  return pino({ level, base, serializers: { err: (error) => errorForLog(error) }, mixin: traceIds });
}

function traceIds(): object {
  const context = trace.getActiveSpan()?.spanContext();
  return context && isSpanContextValid(context) ? { trace_id: context.traceId, span_id: context.spanId } : {};
}

/** Flushes the log of a process that is about to be killed; an exiting process flushes by itself. */
export function flushLog(logger: Logger): void {
  (logger as { [symbols.streamSym]?: { flushSync?(): void } })[symbols.streamSym]?.flushSync?.();
}

/**
 * Serializes an error for the log. Postgres and the libraries before it put values of rows and statements into `detail`,
 * `where`, `parameters` and the message, IP and e-mail addresses among them. So only known-safe fields are included.
 */
export function errorForLog(error: unknown, causes = MAX_CAUSES): unknown {
  if (!(error instanceof Error)) return { type: typeof error };
  const { code, constraint } = error as { code?: unknown; constraint?: unknown };
  return {
    type: error.constructor.name,
    message: messageOf(error, code),
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    ...(typeof constraint === 'string' ? { constraint } : {}),
    stack: framesOf(error),
    ...(error.cause instanceof Error && causes > 0 ? { cause: errorForLog(error.cause, causes - 1) } : {}),
    ...(error instanceof AggregateError && causes > 0
      ? { errors: error.errors.slice(0, MAX_CAUSES).map((each) => errorForLog(each, causes - 1)) }
      : {}),
  };
}

function messageOf({ message }: Error, code: unknown): string {
  const own = message.replace(DETAIL, '').replace(STATEMENT, '');
  return typeof code === 'string' && DATA_EXCEPTION.test(code) ? own.replace(/".*"/s, '"…"') : own;
}

/** The frames of a stack, without the message that it begins with. */
function framesOf({ stack = '', message }: Error): string {
  const rest = stack.includes(message) ? stack.slice(stack.indexOf(message) + message.length) : stack;
  return (rest.match(/^ {4}at .*$/gm) ?? []).join('\n');
}
