import type { Http2Stream } from 'node:http2';

/**
 * Removes the listeners of an HTTP/2 stream once it is closed. Until V8 collects old objects, a stream is kept by
 * native code and by a function in the old generation, and would keep what its listeners refer to. See
 * docs/decisions/2026-11-25-short-lived-objects.md.
 */
export function releaseWhenClosed(stream: Http2Stream): void {
  stream.once('close', () => {
    stream.removeAllListeners();
    // An error without a listener would end the process.
    stream.on('error', ignore);
  });
}

function ignore(): void {}
