import { once } from 'node:events';
import { connect } from 'node:net';

/** A keep-alive connection for one request at a time. */
export interface RestClient {
  /** Sends a request made by `requestText` and returns the status; the body is received without being read. */
  send(request: string): Promise<number>;
  close(): void;
}

/** The text of an HTTP request to the REST API. */
export function requestText(method: string, path: string, key: string, body = ''): string {
  return httpText(method, `/api/v1${path}`, { Host: 'localhost', Authorization: `Bearer ${key}` }, body);
}

/** A request as it goes over the wire. */
export function httpText(method: string, path: string, headers: Readonly<Record<string, string>>, body = ''): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  if (body !== '') lines.push(`Content-Length: ${Buffer.byteLength(body)}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`;
}

/**
 * Opens a connection for a load that shares the CPU cores with what it measures. Node's own client costs more than a
 * tenth of what answering does, so this one only reads as much of a response as it needs to find the next one.
 */
export async function connectRest(port: number): Promise<RestClient> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  await once(socket, 'connect');
  let pending: PromiseWithResolvers<number> | undefined;
  let status = 0;
  let missing = 0;
  socket.on('data', (chunk: Buffer) => {
    if (missing > 0) missing -= chunk.length;
    else {
      const end = chunk.indexOf('\r\n\r\n');
      const head = chunk.toString('latin1', 0, Math.max(0, end));
      const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
      if (length === undefined) throw new Error(`a response without a length: ${head}`);
      status = Number(head.slice(9, 12));
      missing = end + 4 + Number(length) - chunk.length;
    }
    if (missing === 0) pending?.resolve(status);
  });
  socket.on('error', (error) => pending?.reject(error));
  socket.on('close', () => pending?.reject(new Error('the server closed a connection')));
  return {
    send(request) {
      if (socket.destroyed) return Promise.reject(new Error('the server closed a connection'));
      pending = Promise.withResolvers<number>();
      socket.write(request, 'utf8');
      return pending.promise;
    },
    close: () => socket.destroy(),
  };
}
