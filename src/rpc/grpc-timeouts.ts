import type { Http2Server, IncomingHttpHeaders } from 'node:http2';
import { MAX_TIMEOUT_MS } from './services.ts';

/** Format of `grpc-timeout`, a number and its unit; and the units in ms. */
const TIMEOUT = /^(\d{1,8})([HMSmun])$/;
const UNITS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 0.001, n: 0.000_001 };

/**
 * Caps the timeouts of callers at `MAX_TIMEOUT_MS`. grpc-js uses 32-bit timers: a call with a deadline 25 days or more
 * ahead ended at once. There is no hook for this except before the library reads the headers.
 */
export function limitTimeouts(server: Http2Server): void {
  server.prependListener('stream', (_stream, headers: IncomingHttpHeaders) => {
    const [, number, unit = ''] = TIMEOUT.exec(String(headers['grpc-timeout'])) ?? [];
    if (Number(number) * (UNITS[unit] ?? 0) > MAX_TIMEOUT_MS) headers['grpc-timeout'] = `${MAX_TIMEOUT_MS}m`;
  });
}
