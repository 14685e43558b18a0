import { constants, type Http2Server, type Http2Session, type ServerHttp2Stream } from 'node:http2';
import { UNREAD_MS } from '../../common/http/http-limits.ts';
import { releaseWhenClosed } from '../../common/http/release-closed-stream.ts';
import { watchResponse } from '../../common/http/unread-responses.ts';

/** Limits for the calls on all HTTP/2 connections of a server. */
export interface StreamLimits {
  /** Maximum concurrent calls; beyond it only connections with less than their share may start another. */
  readonly max: number;
  /** How long a client may leave an answer unread, in ms. */
  readonly unreadMs: number;
}

/**
 * 20,000 calls whose clients never read took a core from 190 MB to 940 MB. A gateway has as many calls as API requests
 * in progress.
 */
const STREAM_LIMITS: StreamLimits = { max: 4_000, unreadMs: UNREAD_MS };

/**
 * How many calls of a connection may be cancelled at once, and further ones in a second, before Node ends it with all
 * its calls, as defence against floods. A gateway cancels the call of each API client that disconnects: by Node's
 * default of 1,000 and 33 a second, one such client ended every few seconds the connection that it shared with the
 * others.
 */
export const RESET_LIMITS = { streamResetBurst: 5_000, streamResetRate: 1_000 };

/** How long a client may take to end a request that has been answered, in ms. */
const UNENDED_MS = 1_000;

/** Calls started per iteration of the event loop: 4,000 at once blocked everyone else for more than a second. */
const STARTS_PER_TICK = 16;

type Handler = (stream: ServerHttp2Stream, ...rest: unknown[]) => void;

/**
 * Wraps the stream listeners of a server; call it after the server listens. Refuses streams beyond the limit in a way
 * that lets clients retry, closes those whose clients do not read or do not end their request, and ignores those that
 * their clients have already reset. Source: RFC 9113 §8.1, §8.7.
 */
export function limitStreams(server: Http2Server, { max, unreadMs }: StreamLimits = STREAM_LIMITS): void {
  const handlers = server.listeners('stream') as Handler[];
  const counts = new Map<Http2Session, number>();
  /** Calls to start, by connection, served round robin. */
  const waiting = new Map<Http2Session, (() => void)[]>();
  let starting: NodeJS.Immediate | undefined;
  let open = 0;

  function startSome(): void {
    for (let started = 0; started < STARTS_PER_TICK; started++) {
      const [next] = waiting;
      if (!next) break;
      const [session, queue] = next;
      waiting.delete(session);
      queue.shift()?.();
      if (queue.length > 0) waiting.set(session, queue);
    }
    starting = waiting.size > 0 ? setImmediate(startSome) : undefined;
  }

  server.removeAllListeners('stream');
  server.on('stream', (stream: ServerHttp2Stream, ...rest) => {
    stream.on('error', () => {});
    const { session } = stream;
    if (!session) return;
    releaseWhenClosed(stream);
    const own = counts.get(session) ?? 0;
    if (open >= max && own >= max / counts.size) {
      stream.close(constants.NGHTTP2_REFUSED_STREAM);
      return;
    }
    open++;
    counts.set(session, own + 1);
    stream.once('close', () => {
      open--;
      const left = (counts.get(session) ?? 0) - 1;
      if (left > 0) counts.set(session, left);
      else counts.delete(session);
    });
    stream.once('finish', () => {
      if (!stream.readableEnded) setTimeout(() => stream.close(constants.NGHTTP2_NO_ERROR), UNENDED_MS).unref();
    });
    watchResponse(stream, () => stream.destroy());
    stream.setTimeout(unreadMs);
    stream.on('timeout', () => {
      if (stream.writableLength > 0 || stream.writableEnded) stream.destroy();
      else stream.setTimeout(unreadMs);
    });
    const queue = waiting.get(session) ?? [];
    waiting.set(session, queue);
    queue.push(() => {
      if (stream.closed) return;
      for (const handle of handlers) handle.call(server, stream, ...rest);
      // A request without a body ended before its listeners were attached.
      if (stream.readableEnded) stream.emit('end');
    });
    if (!starting) starting = setImmediate(startSome);
  });
}
