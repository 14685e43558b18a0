import type { DescMethod, Message } from '@bufbuild/protobuf';
import type { Pool } from 'pg';
import type { Logger } from 'pino';
import { REASONS, type Reason } from '../../common/contract/errors.ts';
import { newUuid } from '../../common/contract/ids.ts';
import { METADATA } from '../../common/contract/metadata.ts';
import { methodName } from '../../common/contract/method-name.ts';
import { usableRequestId } from '../../common/contract/request-id.ts';
import { successStatus } from '../../common/contract/success-status.ts';
import { throttledReport } from '../../common/runtime/throttled-report.ts';
import { type RecordedRequest, recordRequests } from './api-requests.ts';

/** How long a request may wait to be recorded with others, in ms. */
const COLLECT_MS = 1_000;
/** The most requests that wait: several seconds of what a core can answer, in about 5 MB. */
const MAX_WAITING = 10_000;
/** The shortest time between two log lines about requests that were not recorded, in ms. */
const REPORT_MS = 60_000;

/**
 * What gateways say of a request: method, path of the endpoint, and the status if it succeeds. Other callers may send
 * anything, in calls that only their own account sees.
 */
const REST_REQUEST = /^(GET|HEAD|POST|PATCH|DELETE) (\/api\/v1\/[a-z{}/-]{1,100}) (2\d\d|304)$/;

/** A call by API key that was answered. */
export interface AnsweredCall {
  /** UUID. */
  readonly accountId: string;
  /** What was called; for a rejected call of the gateway the method that it was meant for. */
  readonly method: DescMethod;
  readonly header: Headers;
  /** When it was received, of `performance.now()`. */
  readonly receivedAt: number;
  /** The response; undefined for a stream. */
  readonly response?: Message | undefined;
  /** Why it failed; undefined if it succeeded. */
  readonly reason?: Reason | undefined;
}

/** Records the API requests of accounts, for the dashboard. It is no ledger: what can't be recorded soon is dropped. */
export interface RequestLog {
  /** Never throws or waits. */
  add(call: AnsweredCall): void;
  /** Records what waits. */
  stop(): Promise<void>;
}

/**
 * Collects requests and records them a second after the first of them, in one statement for all accounts. So they cost
 * the calls themselves no statement, and a core without requests sends none.
 */
export function openRequestLog(pool: Pool, logger: Logger): RequestLog {
  let waiting: RecordedRequest[] = [];
  let timer: NodeJS.Timeout | undefined;
  let recording: Promise<void> | undefined;
  const reportDropped = throttledReport(REPORT_MS, (requests, err: unknown) => {
    logger.warn({ requests, err }, 'API requests are missing from the list of recent ones');
  });

  async function recordWaiting(): Promise<void> {
    const requests = waiting;
    waiting = [];
    if (requests.length === 0) return;
    await recordRequests(pool, requests).catch((error: unknown) => reportDropped(requests.length, error));
  }
  function schedule(): void {
    timer ??= setTimeout(() => {
      recording = recordWaiting().finally(() => {
        timer = undefined;
        if (waiting.length > 0) schedule();
      });
    }, COLLECT_MS);
  }

  return {
    add(call) {
      if (call.reason === 'TOO_LATE') return; // The gateway repeats it at once.
      if (waiting.length >= MAX_WAITING) return reportDropped(1, new Error('more requests wait than are kept'));
      waiting.push(requestOf(call));
      schedule();
    },
    async stop() {
      await recording;
      clearTimeout(timer);
      await recordWaiting();
    },
  };
}

function requestOf({ accountId, method, header, receivedAt, response, reason }: AnsweredCall): RecordedRequest {
  const [, verb, path, status] = REST_REQUEST.exec(header.get(METADATA.request) ?? '') ?? [];
  const durationMs = Math.round(performance.now() - receivedAt);
  return {
    id: newUuid(),
    account_id: accountId,
    at: new Date(Date.now() - durationMs),
    request_id: usableRequestId(header.get('x-request-id')) ?? '',
    method: verb ?? 'POST',
    path: path ?? `/${methodName(method)}`,
    status: reason !== undefined ? REASONS[reason].http : status ? successStatus(Number(status), response) : 200,
    reason: reason ?? null,
    duration_ms: durationMs,
  };
}
