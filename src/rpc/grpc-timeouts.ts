import type { Http2Server, IncomingHttpHeaders } from 'node:http2';
import { MAX_TIMEOUT_MS } from './services.ts';

/** What `grpc-timeout` says, as a number and its unit, and the units in ms. */
const TIMEOUT = /^(\d{1,8})([HMSmun])$/;
const UNITS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 0.001, n: 0.000_001 };

/**
 * Keeps the timeouts that callers ask for to the longest that we grant. grpc-js reckons in 32 bits: a call whose deadline
 * was 25 days off or more ended at once. It has no place for this but before it reads the headers.
 */
export function limitTimeouts(server: Http2Server): void {
  server.prependListener('stream', (_stream, headers: IncomingHttpHeaders) => {
    const [, number, unit = ''] = TIMEOUT.exec(String(headers['grpc-timeout'])) ?? [];
    if (Number(number) * (UNITS[unit] ?? 0) > MAX_TIMEOUT_MS) headers['grpc-timeout'] = `${MAX_TIMEOUT_MS}m`;
  });
}
