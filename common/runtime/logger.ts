import { once } from 'node:events';
import { isSpanContextValid, trace } from '@opentelemetry/api';
import { type Logger, pino, symbols } from 'pino';
import { LogStream } from './log-stream.ts';

/** SQLSTATE class 22 (data exceptions), whose messages quote values. */
const DATA_EXCEPTION = /^22...$/;

/** A statement with its values, which the ORM puts before Postgres's message. */
const STATEMENT = /^\s*(?:select|insert|update|delete|with|merge|copy|begin|commit)\b.* - /is;

/** Postgres's `detail`, which the ORM appends to the message: whole rows. */
const DETAIL = /\n - detail: .*/s;

/** The maximum number of causes that are logged. */
const MAX_CAUSES = 4;

/** How long the last lines of a process may take to be written, in ms. */
const FLUSH_MS = 1_000;

/**
 * Opens the logger of a process; `base` is on every line. Errors are logged under `err`, without personal data. Lines
 * written in a span have its `trace_id` and `span_id`.
 */
export function openLogger(level: string, base: Readonly<Record<string, string>>): Logger {
  return pino({ level, base, serializers: { err: (error) => errorForLog(error) }, mixin: traceIds }, new LogStream());
}

function traceIds(): object {
  const context = trace.getActiveSpan()?.spanContext();
  return context && isSpanContextValid(context) ? { trace_id: context.traceId, span_id: context.spanId } : {};
}

/**
 * Resolves when the lines of a process that is about to be killed are written, or after a second; an exiting process
 * flushes by itself.
 */
export async function flushLog(logger: Logger): Promise<void> {
  const stream = (logger as unknown as { [symbols.streamSym]: LogStream })[symbols.streamSym];
  const drained = once(stream, 'drain', { signal: AbortSignal.timeout(FLUSH_MS) });
  // The stream emits `drain` after each write, also if the lines were below the level.
  stream.write('');
  // It times out, or nobody reads the log any more.
  await drained.catch(() => undefined);
}

/**
 * Serializes an error for the log. Postgres and the libraries before it put values of rows and statements into
 * `detail`, `where`, `parameters` and the message, IP and e-mail addresses among them. So only known-safe fields are
 * included.
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
