import { connect } from 'node:net';

/** A raw answer. */
export interface RawAnswer {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

/** How a client sends and what it expects. */
interface Sending {
  /** Whether it reads nothing before it has sent everything. */
  readonly readLast?: boolean;
  /** Whether it has sent a HEAD. */
  readonly withoutBody?: boolean;
  /** Encoding of the parts; default: UTF-8. */
  readonly encoding?: BufferEncoding;
}

/**
 * Sends bytes unchanged, part by part, and reads one answer. Rejects when the server closes or resets the connection
 * without one.
 */
export function exchange(
  url: string,
  parts: Iterable<string>,
  { readLast = false, withoutBody = false, encoding = 'utf8' }: Sending = {},
): Promise<RawAnswer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    let received = '';
    const socket = connect(Number(port), hostname, async () => {
      for (const part of parts) {
        if (!socket.writable) break;
        await new Promise((sent) => socket.write(part, encoding, () => sent(undefined)));
      }
      socket.resume();
    });
    if (readLast) socket.pause();
    socket.setEncoding('latin1');
    socket.on('data', (text) => {
      received += text;
      // An interim 100 Continue is not the answer.
      received = received.replace(/^HTTP\/1\.1 100 [^\r]*\r\n\r\n/, '');
      const end = received.indexOf('\r\n\r\n');
      if (end < 0) return;
      const [head, body] = [received.slice(0, end), received.slice(end + 4)];
      const status = Number(head.split(' ')[1]);
      const length =
        withoutBody || status === 304 || status === 204 ? 0 : Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1]);
      if (!(body.length >= length)) return;
      resolve({ status, head, body });
      socket.destroy();
    });
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('the server closed the connection without an answer')));
  });
}

/** The headers of an answer. */
export function headersOf({ head }: RawAnswer): Headers {
  const headers = new Headers();
  for (const line of head.split('\r\n').slice(1)) {
    const colon = line.indexOf(':');
    headers.append(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  return headers;
}
