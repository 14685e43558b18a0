import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { Answer, type CodeRoute } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import { requestId } from '../rest/request-id.ts';
import { type Origin, originsBy } from './origin.ts';
import type { PageKind } from './page-texts.ts';
import { landingPage, type Page, pageFor } from './pages.ts';
import type { RouteTable } from './route-table.ts';
import { scanMessage } from './scan-message.ts';
import type { Spool } from './spool.ts';
import type { UnknownCodes } from './unknown-codes.ts';

const SCAN_PATH = /^\/r\/([^/?#]+)\/?(?:[?#]|$)/;
const SHORT_CODE = /^[0-9A-Za-z]{1,32}$/;

/** How soon a reader may try again when a code can't be looked up, in seconds. */
const RETRY_AFTER = '5';

/** Statuses of the pages. Source: decision "The scan". */
const STATUS: Readonly<Record<PageKind, number>> = { paused: 200, gone: 410, unknown: 404, unavailable: 503 };

export interface ScanOptions {
  readonly table: RouteTable;
  readonly unknown: UnknownCodes;
  readonly spool: Spool;
  readonly trustedProxies: readonly string[];
  readonly countryHeader: string | undefined;
  readonly logger: Logger;
}

/** Answers scans; waits for nothing but this machine's disk, save for a code that it sees for the first time. */
export interface Scans {
  /** Whether the request is a scan: `/r/…` on any host, and everything on a custom domain. */
  concerns(request: IncomingMessage): boolean;
  handle(request: IncomingMessage, response: ServerResponse): void;
}

export function answerScans(options: ScanOptions): Scans {
  const { table, unknown, spool, logger } = options;
  const originOf = originsBy(options.trustedProxies);

  function handle(request: IncomingMessage, response: ServerResponse): void {
    response.setHeader('x-request-id', requestId(request));
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.writeHead(405, { allow: 'GET, HEAD', 'content-length': '0' }).end();
      return;
    }
    const origin = originOf(request);
    const shortCode = SCAN_PATH.exec(request.url ?? '')?.[1] ?? '';
    if (!SHORT_CODE.test(shortCode)) {
      page(request, response, 'unknown');
      return;
    }
    const route = table.code(shortCode);
    if (route) {
      answer(request, response, origin, route);
      return;
    }
    unknown.find(shortCode).then(
      (found) => {
        if (found) table.apply(found);
        // The table may know a newer one by now; and where its disk takes nothing, what was found still leads there.
        const looked = found?.entry.case === 'code' ? found.entry.value : undefined;
        answer(request, response, origin, table.code(shortCode) ?? looked);
      },
      (error: unknown) => {
        logger.warn({ err: error }, 'an unknown code could not be looked up');
        response.setHeader('retry-after', RETRY_AFTER);
        page(request, response, 'unavailable');
      },
    );
  }

  function answer(
    request: IncomingMessage,
    response: ServerResponse,
    origin: Origin,
    route: CodeRoute | undefined,
  ): void {
    if (!route || !servedOn(origin.hostname, route)) {
      page(request, response, 'unknown');
      return;
    }
    const leave = () => send(request, response, route);
    // A GET is one scan, kept before its answer leaves. A HEAD resolves and counts nothing.
    if (request.method === 'GET' && COUNTED.has(route.answer)) {
      spool.append(scanMessage(request, route, origin, options.countryHeader), leave);
    } else {
      leave();
    }
  }

  /**
   * The platform's host serves every code, and so does any host that is no custom domain. A custom domain serves the
   * codes that its account has printed on it; those of an account that had it before are on another's domain now.
   */
  function servedOn(hostname: string, route: CodeRoute): boolean {
    const domain = table.customDomain(hostname);
    return !domain || (route.hostname === hostname && route.accountId === domain.accountId);
  }

  return {
    concerns: (request) =>
      (request.url ?? '').startsWith('/r/') || table.customDomain(originOf(request).hostname) !== undefined,
    handle,
  };
}

/** Active and paused codes; nothing else is recorded. */
const COUNTED = new Set<Answer>([Answer.REDIRECT, Answer.LANDING_PAGE, Answer.PAUSED]);

function send(request: IncomingMessage, response: ServerResponse, route: CodeRoute): void {
  switch (route.answer) {
    case Answer.REDIRECT:
      response.writeHead(302, { location: route.targetUrl, 'cache-control': 'no-store', 'content-length': '0' }).end();
      break;
    case Answer.LANDING_PAGE:
      sendPage(request, response, 200, landingPage(route.landingPage));
      break;
    case Answer.PAUSED:
      page(request, response, 'paused');
      break;
    case Answer.GONE:
      page(request, response, 'gone');
      break;
    default:
      page(request, response, 'unknown');
  }
}

function page(request: IncomingMessage, response: ServerResponse, kind: PageKind): void {
  sendPage(request, response, STATUS[kind], pageFor(kind, request.headers['accept-language']));
}

function sendPage(request: IncomingMessage, response: ServerResponse, status: number, { headers, body }: Page): void {
  response.writeHead(status, { ...headers, 'cache-control': 'no-store', 'content-length': String(body.length) });
  response.end(request.method === 'HEAD' ? undefined : body);
}
