import type { Logger } from 'pino';
import { openLogger } from './logger.ts';
import { OperatorError } from './operator-error.ts';

/**
 * Makes a process that fails unexpectedly log the reason as its last line and exit with code 1, so that its supervisor
 * restarts it: after an uncaught error or an unhandled rejection its state cannot be trusted.
 */
export function exitOnFatalErrors(logger: Logger): void {
  // Node reports unhandled rejections here too.
  process.on('uncaughtException', (error, origin) => {
    logger.fatal({ err: error, origin }, 'the process exits after an unexpected error');
    process.exit(1);
  });
}

interface FatalErrorOptions {
  /** The sentence for the operator about an error that is no `OperatorError`; undefined for unexpected ones. */
  readonly sentenceOf?: (error: unknown) => string | undefined;
  /** The process that logs an unexpected error. Without it the error is printed as it is. */
  readonly logAs?: string;
}

/** Prints or logs the error that ends a program, and makes its exit code 1. */
export function reportFatalError(error: unknown, { sentenceOf, logAs }: FatalErrorOptions = {}): void {
  process.exitCode = 1;
  const sentence = error instanceof OperatorError ? error.message : sentenceOf?.(error);
  if (sentence !== undefined || logAs === undefined) console.error(sentence ?? error);
  else openLogger('fatal', { process: logAs }).fatal({ err: error }, 'the process exits after an unexpected error');
}
