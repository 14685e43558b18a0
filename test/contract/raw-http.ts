import { connect } from 'node:net';

/** An answer as it came over the wire. */
export interface RawAnswer {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

/**
 * Sends bytes as they are, part by part, and reads one answer. Rejects when the server closes or resets the connection
 * without one. `readLast`: like a client that reads nothing before it has sent everything.
 */
export function exchange(url: string, parts: Iterable<string>, { readLast = false } = {}): Promise<RawAnswer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    let received = '';
    const socket = connect(Number(port), hostname, async () => {
      for (const part of parts) {
        if (!socket.writable) break;
        await new Promise((sent) => socket.write(part, sent));
      }
      socket.resume();
    });
    if (readLast) socket.pause();
    socket.setEncoding('latin1');
    socket.on('data', (text) => {
      received += text;
      // What only says that the body may come is no answer.
      received = received.replace(/^HTTP\/1\.1 100 [^\r]*\r\n\r\n/, '');
      const [head = '', body] = received.split('\r\n\r\n', 2);
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1]);
      if (body === undefined || !(body.length >= length)) return;
      resolve({ status: Number(head.split(' ')[1]), head, body });
      socket.destroy();
    });
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('the server closed the connection without an answer')));
  });
}
