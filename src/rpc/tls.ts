import { createSecureContext, type PeerCertificate, TLSSocket } from 'node:tls';
import type { Logger } from 'pino';
import { OperatorError } from '../../common/runtime/operator-error.ts';
import { readConfiguredCa, readConfiguredFile } from '../../common/runtime/read-configured-file.ts';

/** Files of a core's certificate and key, and of the CA of internal callers' certificates. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
  /** Undefined: client certificates are not requested. */
  readonly clientCa: string | undefined;
}

/** Contents of the files, PEM. */
export interface TlsContext {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly ca: Buffer | undefined;
}

/** A certificate that may be replaced while the server runs. */
export interface Tls {
  readonly current: TlsContext;
  /** Calls `listener` with every new certificate. */
  watch(listener: (context: TlsContext) => void): void;
  close(): void;
}

/** How often the files are checked for a new certificate, in ms. */
const RELOAD_MS = 60_000;

/**
 * Reads the files now and every minute. Throws `OperatorError` when they are unusable now; later an unusable file is
 * logged and the previous certificate stays.
 */
export function openTls(files: TlsFiles, logger: Logger, reloadMs = RELOAD_MS): Tls {
  let current = load(files);
  const listeners: ((context: TlsContext) => void)[] = [];
  const timer = setInterval(() => {
    try {
      const read = load(files);
      if (same(read, current)) return;
      for (const listener of listeners) listener(read);
      // Only now: if a listener fails, the files are tried again.
      current = read;
      logger.info('the new certificate is in use');
    } catch (error) {
      logger.error({ err: error }, 'the new certificate is unusable; the previous one stays in use');
    }
  }, reloadMs);
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
    ca: clientCa === undefined ? undefined : readConfiguredCa('TLS_CLIENT_CA', clientCa),
  };
  try {
    createSecureContext(context);
  } catch (error) {
    throw new OperatorError(
      'TLS_CERT, TLS_KEY and TLS_CLIENT_CA must be PEM files, and the key must belong to the certificate.',
      {
        cause: error,
      },
    );
  }
  return context;
}

function same(one: TlsContext, other: TlsContext): boolean {
  const parts = ({ cert, key, ca }: TlsContext) => [cert, key, ca ?? Buffer.alloc(0)];
  const others = parts(other);
  return parts(one).every((part, index) => part.equals(others[index] ?? Buffer.alloc(0)));
}

/** The name in the peer's certificate; undefined without one from the client CA. */
export function peerName(socket: unknown): string | undefined {
  return socket instanceof TLSSocket && socket.authorized ? certificateName(socket.getPeerCertificate()) : undefined;
}

/** The common name of a certificate, for the audit. In a resumed session it may be missing. */
export function certificateName({ subject }: Partial<PeerCertificate>): string {
  const name = subject?.CN;
  return (Array.isArray(name) ? name[0] : name) || 'certificate';
}
