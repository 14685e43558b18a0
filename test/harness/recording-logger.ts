import { Writable } from 'node:stream';
import { type Logger, pino } from 'pino';

/** A logger with the lines that it has written: warnings and above, as JSON. */
export function recordingLogger(): { readonly lines: readonly string[]; readonly logger: Logger } {
  const lines: string[] = [];
  const sink = new Writable({
    write(chunk, _, done) {
      lines.push(String(chunk));
      done();
    },
  });
  return { lines, logger: pino({ level: 'warn' }, sink) };
}
