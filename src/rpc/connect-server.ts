import { createServer, type Server } from 'node:http';
import { createServer as createHttp2Server, type Http2Server, type ServerHttp2Session } from 'node:http2';
import net from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { answerClientErrors } from '../../common/http/client-errors.ts';
import { closePort, descriptorOf } from '../../common/http/close-port.ts';
import { limitPipelining, limitUnread } from '../../common/http/http-limits.ts';
import { connectHandler } from './connect-handler.ts';
import { HEAD_MS, limitConnections, limitSessions } from './connection-limits.ts';
import { type ListeningServer, MAX_STREAMS, RECEIVE_MS, type ServerOptions } from './server-options.ts';
import { limitStreams, RESET_LIMITS } from './stream-limits.ts';
import type { Tls } from './tls.ts';

/** Start of the preface of an HTTP/2 connection with prior knowledge (RFC 9113 §3.4). */
const HTTP2_PREFACE_START = 'PRI';

/** How often Node checks for connections that exceed their timeouts, in ms. */
const CHECK_MS = 5_000;

/**
 * Serves Connect, gRPC-Web and gRPC on one port, in cleartext or over TLS. Node has separate servers for HTTP/1.1 and
 * HTTP/2, so the first bytes of a cleartext connection decide which one gets it: curl and browsers use HTTP/1.1, gRPC
 * HTTP/2.
 */
export async function serveConnect(
  options: ServerOptions & { readonly corsOrigins: readonly string[] },
): Promise<ListeningServer> {
  const shutdown = new AbortController();
  const handler = connectHandler(options, shutdown.signal);
  const http1 = createServer(
    // A message may have to wait in the queue for large messages before it is received.
    { headersTimeout: HEAD_MS, requestTimeout: 2 * RECEIVE_MS, connectionsCheckingInterval: CHECK_MS },
    handler,
  );
  // This server never listens but gets its connections; only a listening server checks timeouts.
  http1.emit('listening');
  limitUnread(http1);
  limitPipelining(http1);
  const clientErrors = answerClientErrors(http1, { json: (message) => ({ code: 'invalid_argument', message }) });
  let isDraining = false;
  http1.prependListener('request', (_request, response) => {
    clientErrors.add(response);
    if (isDraining) response.setHeader('connection', 'close');
  });
  const http2 = createHttp2Server({ settings: { maxConcurrentStreams: MAX_STREAMS }, ...RESET_LIMITS }, handler);
  limitSessions(http2);
  limitStreams(http2);
  const sessions = new Set<ServerHttp2Session>();
  http2.on('session', (session) => {
    sessions.add(session);
    session.on('close', () => sessions.delete(session));
  });
  const silent = new Set<net.Socket>();
  const server = options.tls
    ? secureServer(options.tls, http1, http2)
    : net.createServer((socket) => sniff(socket, silent, http1, http2));
  limitConnections(server, options.logger);
  const sockets = new Set<net.Socket>();
  server.on('connection', (socket: net.Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await listen(server, options.host, options.port);

  return {
    port: (server.address() as net.AddressInfo).port,
    drain() {
      isDraining = true;
    },
    async stop(graceMs) {
      isDraining = true;
      const closed = Promise.withResolvers<void>();
      await closePort(server, descriptorOf(server), closed.resolve);
      for (const session of sessions) session.close();
      http1.closeIdleConnections();
      http1.keepAliveTimeout = 1;
      // Connections without a byte yet belong to neither server.
      for (const socket of silent) socket.destroy();
      const timer = setTimeout(() => {
        shutdown.abort();
        for (const session of sessions) session.destroy();
        for (const socket of sockets) socket.destroy();
      }, graceMs);
      await closed.promise;
      clearTimeout(timer);
      http1.close();
    },
  };
}

/** TLS negotiates the protocol by ALPN. Callers without a certificate from the client CA are accepted as anyone. */
function secureServer(tls: Tls, http1: Server, http2: Http2Server): net.Server {
  const clientCertificates = { requestCert: tls.current.ca !== undefined, rejectUnauthorized: false };
  const options = {
    ...tls.current,
    ...clientCertificates,
    ALPNProtocols: ['h2', 'http/1.1'],
    handshakeTimeout: HEAD_MS,
  };
  const server = createTlsServer(options, (socket) => {
    socket.on('error', () => socket.destroy());
    (socket.alpnProtocol === 'h2' ? http2 : http1).emit('connection', socket);
  });
  tls.watch((context) => server.setSecureContext(context));
  return server;
}

function sniff(socket: net.Socket, silent: Set<net.Socket>, http1: Server, http2: Http2Server): void {
  // Neither server listens for errors yet while the first byte is missing.
  socket.on('error', () => socket.destroy());
  silent.add(socket);
  socket.once('close', () => silent.delete(socket));
  const end = () => socket.destroy();
  socket.setTimeout(HEAD_MS, end);
  let start = '';
  socket.on('data', function read(bytes: Buffer) {
    start += bytes.toString('latin1');
    const isHttp2 = start.startsWith(HTTP2_PREFACE_START);
    // The network may deliver the preface byte by byte.
    if (!isHttp2 && HTTP2_PREFACE_START.startsWith(start)) return;
    socket.off('data', read);
    socket.setTimeout(0, end);
    silent.delete(socket);
    socket.pause();
    socket.unshift(Buffer.from(start, 'latin1'));
    (isHttp2 ? http2 : http1).emit('connection', socket);
    process.nextTick(() => socket.resume());
  });
}

/** Resolves once the server listens; rejects when the port is in use. */
function listen(server: net.Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}
