import type { Page } from './pages.ts';

/** The headers that a scan looks at; `IncomingHttpHeaders` has them. */
export interface ScanHeaders {
  readonly host?: string | undefined;
  readonly 'user-agent'?: string | undefined;
  readonly referer?: string | undefined;
  readonly 'accept-language'?: string | undefined;
  readonly forwarded?: string | undefined;
  readonly [name: string]: string | string[] | undefined;
}

/** What a reader asked for, whichever way it was read. */
export interface ScanRequest {
  readonly method: string;
  /** What stands for one in the path; undefined where nothing does that could be one. */
  readonly shortCode: string | undefined;
  readonly headers: ScanHeaders;
  /** The address at the other end of the connection. */
  readonly peer: string;
}

/** Where the answer to one request goes. */
export interface Reply {
  redirect(requestId: string, targetUrl: string): void;
  page(requestId: string, status: number, page: Page, headers?: Readonly<Record<string, string>>): void;
  methodNotAllowed(requestId: string, allowed: string): void;
}
