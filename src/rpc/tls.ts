import { createSecureContext, type PeerCertificate, TLSSocket } from 'node:tls';
import type { Logger } from 'pino';
import { OperatorError } from '../../common/runtime/operator-error.ts';
import { readConfiguredFile } from '../../common/runtime/read-configured-file.ts';

/** Where a core's certificate and key are, and whose certificates it takes for those of internal callers. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
  /** Undefined: callers are asked for no certificate. */
  readonly clientCa: string | undefined;
}

/** What the files hold, PEM. */
export interface TlsContext {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly ca: Buffer | undefined;
}

/** A certificate that may be replaced while we serve. */
export interface Tls {
  readonly current: TlsContext;
  /** Calls `listener` with every new one. */
  watch(listener: (context: TlsContext) => void): void;
  close(): void;
}

/** How soon a certificate that was replaced on disk is served, in ms. */
const AGAIN_MS = 60_000;

/**
 * Reads the files now and every minute. Throws `OperatorError` when they can't be used now; later the one before
 * stays, and it is logged.
 */
export function openTls(files: TlsFiles, logger: Logger, againMs = AGAIN_MS): Tls {
  let current = load(files);
  const listeners: ((context: TlsContext) => void)[] = [];
  const timer = setInterval(() => {
    try {
      const read = load(files);
      if (same(read, current)) return;
      current = read;
      for (const listener of listeners) listener(current);
      logger.info('a new certificate is served');
    } catch (error) {
      logger.error({ err: error }, 'the new certificate can’t be used; the one before is served');
    }
  }, againMs);
  timer.unref();
  return {
    get current() {
      return current;
    },
    watch: (listener) => void listeners.push(listener),
    close: () => clearInterval(timer),
  };
}

function load({ cert, key, clientCa }: TlsFiles): TlsContext {
  const context = {
    cert: readConfiguredFile('TLS_CERT', cert),
    key: readConfiguredFile('TLS_KEY', key),
    ca: clientCa === undefined ? undefined : readConfiguredFile('TLS_CLIENT_CA', clientCa),
  };
  try {
    createSecureContext(context);
  } catch (error) {
    throw new OperatorError('TLS_CERT, TLS_KEY and TLS_CLIENT_CA must be PEM files, the key that of the certificate.', {
      cause: error,
    });
  }
  return context;
}

function same(one: TlsContext, other: TlsContext): boolean {
  const parts = ({ cert, key, ca }: TlsContext) => [cert, key, ca ?? Buffer.alloc(0)];
  const others = parts(other);
  return parts(one).every((part, index) => part.equals(others[index] ?? Buffer.alloc(0)));
}

/** The name in the certificate that the other side has proven to be its own; undefined when it showed none of ours. */
export function nameOfPeer(socket: unknown): string | undefined {
  return socket instanceof TLSSocket && socket.authorized ? nameIn(socket.getPeerCertificate()) : undefined;
}

/** The name in a certificate, for the audit. A session that is resumed may not have it any more. */
export function nameIn({ subject }: Partial<PeerCertificate>): string {
  const name = subject?.CN;
  return (Array.isArray(name) ? name[0] : name) || 'certificate';
}
