import type { Logger } from 'pino';
import { usableRequestId } from '../../../common/contract/request-id.ts';
import type { Decision } from '../../../common/targets/evaluate.ts';
import { Answer } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import { Page } from '../../../proto/gen/signpost/targets/v1/policy_pb.ts';
import { type Origin, originReader } from '../../http/origin.ts';
import { requestId } from '../../http/request-id.ts';
import { type FoundRoute, foundRoute } from '../routes/route-record.ts';
import type { RouteTable } from '../routes/route-table.ts';
import { TooManyUnknown, type UnknownCodes } from '../routes/unknown-codes.ts';
import { ID_AT } from '../spool/scan-layout.ts';
import { stampScans } from '../spool/scan-stamp.ts';
import type { Spool } from '../spool/spool.ts';
import type { PageKind } from './page-texts.ts';
import { landingPage, pageFor } from './pages.ts';
import { scanIdText } from './scan-id.ts';
import { scanWriter } from './scan-message.ts';
import type { Reply, ScanHeaders, ScanRequest } from './scan-request.ts';
import { targetDecider } from './targets.ts';
import { Visit, type VisitSources } from './visit.ts';

/** `Retry-After` when a code can't be looked up, in seconds. */
const RETRY_AFTER_SECONDS = '5';

/** The status of each page. Source: docs/contract.md, "The scan". */
const STATUS: Readonly<Record<PageKind, number>> = { paused: 200, gone: 410, unknown: 404, unavailable: 503 };

/** Only scans of active and paused codes are recorded. */
const COUNTED: ReadonlySet<Answer> = new Set([Answer.REDIRECT, Answer.LANDING_PAGE, Answer.PAUSED]);

export interface ScanHandlerOptions extends VisitSources {
  readonly table: RouteTable;
  readonly unknown: UnknownCodes;
  readonly spool: Spool;
  readonly trustedProxies: readonly string[];
  readonly logger: Logger;
  /** Measures an answer: its result, and the time since its request was read, in ms. */
  readonly measure?: MeasureScan | undefined;
}

/** What a scan was answered with; `limited`: the client has scanned too many codes that do not exist. */
export type ScanResult =
  | 'gone'
  | 'landing_page'
  | 'limited'
  | 'method_not_allowed'
  | 'paused'
  | 'redirect'
  | 'unavailable'
  | 'unknown';

export type MeasureScan = (result: ScanResult, ms: number) => void;

/** Answers scans. It depends on local disk only, except for a code that it sees for the first time. */
export interface ScanHandler {
  /** Whether any path on this host is a scan: a custom domain, removed or not, serves nothing else. */
  ownsHost(peer: string, headers: ScanHeaders): boolean;
  answer(request: ScanRequest, reply: Reply): void;
  /** The number of scans that were recorded and answered. */
  answered(): number;
}

export function createScanHandler(options: ScanHandlerOptions): ScanHandler {
  const { table, unknown, spool, measure } = options;
  const originOf = originReader(options.trustedProxies);
  let answered = 0;
  const { countryOf, saltAt } = options;
  const sources: VisitSources = { countryHeader: options.countryHeader?.toLowerCase(), countryOf, saltAt };
  const decideTarget = targetDecider(options.logger);
  const scanMessage = scanWriter(stampScans(() => spool.status().lost));

  function answer(request: ScanRequest, reply: Reply): void {
    const { method, shortCode, headers } = request;
    const start = measure ? performance.now() : 0;
    if (method !== 'GET' && method !== 'HEAD') {
      reply.methodNotAllowed(requestId(request), 'GET, HEAD');
      measure?.('method_not_allowed', performance.now() - start);
      return;
    }
    if (shortCode === undefined) {
      sendPage(request, reply, 'unknown');
      measure?.('unknown', performance.now() - start);
      return;
    }
    const origin = originOf(request.peer, headers);
    const route = table.code(shortCode);
    if (route) {
      respond(request, reply, origin, route, start);
      return;
    }
    unknown.find(shortCode, origin.address).then(
      (found) => {
        // The answer does not wait for other writers.
        if (found) table.apply(found);
        // The table may have a newer version by now.
        const lookedUp = found?.entry.case === 'code' ? foundRoute(found.version, found.entry.value) : undefined;
        respond(request, reply, origin, table.code(shortCode) ?? lookedUp, start);
      },
      (error: unknown) => {
        const tooMany = error instanceof TooManyUnknown;
        const retryAfter = tooMany ? String(error.seconds) : RETRY_AFTER_SECONDS;
        const page = pageFor('unavailable', headers['accept-language']);
        reply.page(requestId(request), tooMany ? 429 : STATUS.unavailable, page, { 'retry-after': retryAfter });
        measure?.(tooMany ? 'limited' : 'unavailable', performance.now() - start);
      },
    );
  }

  /** `start`: when the request was read, of `performance.now()`, if answers are measured. */
  function respond(
    request: ScanRequest,
    reply: Reply,
    origin: Origin,
    route: FoundRoute | undefined,
    start: number,
  ): void {
    const { headers } = request;
    if (!route || !servedOn(origin.hostname, route)) {
      sendPage(request, reply, 'unknown');
      measure?.('unknown', performance.now() - start);
      return;
    }
    const visit = new Visit(sources, headers, origin);
    const decided = route.policy && decideTarget(route, route.policy, visit, request.query);
    if (request.method === 'GET' && COUNTED.has(route.answer)) {
      // A GET is one scan, which is recorded before the response is sent. A HEAD resolves without counting.
      const message = scanMessage(route, visit, decided);
      const id = usableRequestId(headers['x-request-id']) ?? scanIdText(message, ID_AT);
      answered++;
      spool.append(message, () => {
        const result = sendAnswer(request, reply, id, route, decided);
        measure?.(result, performance.now() - start);
      });
    } else {
      const result = sendAnswer(request, reply, requestId(request), route, decided);
      measure?.(result, performance.now() - start);
    }
  }

  /**
   * The platform's host serves every code, and so does any host that no account has ever verified. A custom domain
   * serves only the codes that its account has printed on it, also while it is failing and after it was removed. Once
   * another account verifies the domain, it no longer serves those codes.
   */
  function servedOn(hostname: string, route: FoundRoute): boolean {
    const domain = table.customDomain(hostname);
    return !domain || (route.hostname === hostname && route.accountId === domain.accountId);
  }

  return {
    ownsHost: (peer, headers) => table.customDomain(originOf(peer, headers).hostname) !== undefined,
    answer,
    answered: () => answered,
  };
}

function sendAnswer(
  request: ScanRequest,
  reply: Reply,
  id: string,
  route: FoundRoute,
  decided: Decision | undefined,
): ScanResult {
  switch (answerOf(route, decided)) {
    case Answer.REDIRECT:
      reply.redirect(id, typeof decided?.target === 'string' ? decided.target : route.targetUrl);
      return 'redirect';
    case Answer.LANDING_PAGE:
      reply.page(id, 200, landingPage(route.landingPage));
      return 'landing_page';
    case Answer.PAUSED:
      reply.page(id, STATUS.paused, pageFor('paused', request.headers['accept-language']));
      return 'paused';
    case Answer.GONE:
      reply.page(id, STATUS.gone, pageFor('gone', request.headers['accept-language']));
      return 'gone';
    default:
      reply.page(id, STATUS.unknown, pageFor('unknown', request.headers['accept-language']));
      return 'unknown';
  }
}

function answerOf({ answer }: FoundRoute, decided: Decision | undefined): Answer {
  if (!decided || typeof decided.target === 'string') return answer;
  return decided.target === Page.PAUSED ? Answer.PAUSED : Answer.GONE;
}

function sendPage(request: ScanRequest, reply: Reply, kind: PageKind): void {
  reply.page(requestId(request), STATUS[kind], pageFor(kind, request.headers['accept-language']));
}
