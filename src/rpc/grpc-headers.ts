import type { Http2Server, IncomingHttpHeaders } from 'node:http2';
import type { Metadata } from '@grpc/grpc-js';

/**
 * The header that keeps the timeout of a call from grpc-js; a value that a caller sends under this name is replaced.
 */
const TIMEOUT = 'signpost-timeout';

/** The path of calls to methods that do not exist. */
export const UNKNOWN_PATH = '/signpost/Unknown';

/** The header with the path that such a call had. */
const CALLED_PATH = 'signpost-called-path';

/**
 * Changes the headers of calls before grpc-js reads them, because it has no hook there. It would end a call at its
 * deadline, and answer one to an unknown method, with a status that lacks the reason; so the timeout is renamed, and
 * unknown paths become `UNKNOWN_PATH`.
 */
export function interceptHeaders(server: Http2Server, paths: ReadonlySet<string>): void {
  server.prependListener('stream', (_stream, headers: IncomingHttpHeaders) => {
    delete headers[TIMEOUT];
    if (headers['grpc-timeout'] !== undefined) headers[TIMEOUT] = headers['grpc-timeout'];
    delete headers['grpc-timeout'];
    const { ':path': path = '' } = headers;
    if (paths.has(path)) return;
    headers[CALLED_PATH] = path;
    headers[':path'] = UNKNOWN_PATH;
  });
}

/** Removes the timeout of a call from its metadata; undefined without one. */
export function takeTimeout(metadata: Metadata): string | undefined {
  const [text] = metadata.get(TIMEOUT);
  metadata.remove(TIMEOUT);
  return text?.toString();
}

/** The path that a call to `UNKNOWN_PATH` had. */
export function calledPath(metadata: Metadata): string {
  return metadata.get(CALLED_PATH).toString();
}

/** Converts gRPC metadata to headers: binary values in base64, as on the wire. */
export function headersOf(metadata: Metadata): Headers {
  const headers = new Headers();
  for (const key of Object.keys(metadata.getMap())) {
    for (const value of metadata.get(key)) {
      headers.append(key, typeof value === 'string' ? value : value.toString('base64'));
    }
  }
  return headers;
}
