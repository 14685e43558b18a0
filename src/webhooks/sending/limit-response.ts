import type { buildConnector } from 'undici';
import { filterReads } from './filter-reads.ts';

/**
 * Most bytes of one response, with all that is read of its body and interim responses. Ordinary ones have a few
 * hundred.
 */
const MAX_RESPONSE_BYTES = 128 * 1024;

/** A receiver sent more than 128 KiB in response to one request. */
export class ResponseTooLong extends Error {
  constructor() {
    super('The endpoint sent too long a response.');
  }
}

/**
 * Closes a connection that has received over 128 KiB since the last request was written. undici limits neither the
 * reason phrase nor the extensions of chunks, which a receiver could send at full speed for as long as the attempt
 * lasts.
 */
export function limitResponse(connect: buildConnector.connector): buildConnector.connector {
  return filterReads(connect, (socket) => {
    let written = 0;
    let received = 0;
    return (bytes) => {
      if (socket.bytesWritten !== written) [written, received] = [socket.bytesWritten, 0];
      received += bytes?.length ?? 0;
      if (received <= MAX_RESPONSE_BYTES) return bytes;
      socket.destroy(new ResponseTooLong());
      return null;
    };
  });
}
