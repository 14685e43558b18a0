import { type Logger, pino, symbols } from 'pino';

/** SQLSTATEs of values that are wrong, whose messages quote them. */
const OF_DATA = /^22...$/;

/** A statement that stands before Postgres's own message, with its values filled in. */
const STATEMENT = /^\s*(?:select|insert|update|delete|with|merge|copy|begin|commit)\b.* - /is;

/** Postgres's `detail`, as the ORM puts it behind the message: whole rows. */
const DETAIL = /\n - detail: .*/s;

/** How many causes are told. */
const MOST_CAUSES = 4;

/** The logger of a process; `base` is on every line. Errors are logged under `err`, without anybody's data. */
export function openLogger(level: string, base: Readonly<Record<string, string>>): Logger {
  return pino({ level, base, serializers: { err: (error) => errorForLog(error) } });
}

/** Writes what has been logged, for a process that is about to be killed; one that exits does so by itself. */
export function flushLog(logger: Logger): void {
  (logger as { [symbols.streamSym]?: { flushSync?(): void } })[symbols.streamSym]?.flushSync?.();
}

/**
 * What a log tells of an error. Postgres and what stands before it put values of rows and statements into `detail`,
 * `where`, `parameters` and the message; addresses and e-mail addresses among them. So only what is known is told.
 */
export function errorForLog(error: unknown, causes = MOST_CAUSES): unknown {
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
      ? { errors: error.errors.slice(0, MOST_CAUSES).map((each) => errorForLog(each, causes - 1)) }
      : {}),
  };
}

function messageOf({ message }: Error, code: unknown): string {
  const own = message.replace(DETAIL, '').replace(STATEMENT, '');
  return typeof code === 'string' && OF_DATA.test(code) ? own.replace(/".*"/s, '"…"') : own;
}

/** A stack begins with the message. */
function framesOf({ stack = '', message }: Error): string {
  const rest = stack.includes(message) ? stack.slice(stack.indexOf(message) + message.length) : stack;
  return (rest.match(/^ {4}at .*$/gm) ?? []).join('\n');
}
