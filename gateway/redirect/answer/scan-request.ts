import type { OriginHeaders } from '../../http/origin.ts';
import type { Page } from './pages.ts';

/** The request headers that a scan reads; a subset of `IncomingHttpHeaders`. */
export interface ScanHeaders extends OriginHeaders {
  readonly 'user-agent'?: string | undefined;
  readonly referer?: string | undefined;
  readonly 'accept-language'?: string | undefined;
}

/** A scan request, whichever parser read it. */
export interface ScanRequest {
  readonly method: string;
  /** The short code in the path; undefined if the path contains nothing that could be one. */
  readonly shortCode: string | undefined;
  /** The query of the scan URL, without its `?`; empty if it has none. */
  readonly query: string;
  readonly headers: ScanHeaders;
  /** The remote address of the connection. */
  readonly peer: string;
}

/** Sends the response to one request. */
export interface Reply {
  redirect(requestId: string, targetUrl: string): void;
  page(requestId: string, status: number, page: Page, headers?: Readonly<Record<string, string>>): void;
  methodNotAllowed(requestId: string, allowed: string): void;
}
