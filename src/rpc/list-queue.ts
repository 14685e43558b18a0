import { setImmediate as nextIteration } from 'node:timers/promises';
import type { DescMethod } from '@bufbuild/protobuf';
import type { Interceptor } from '@connectrpc/connect';
import { fairQueue } from '../../common/queues/fair-queue.ts';
import { FiguresSchema } from '../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import { callerKey, fairnessKey } from '../access/caller.ts';
import { eachInTurn } from './each-in-turn.ts';

/**
 * Lists that are read at the same time. An account may have two, so that slow statements of some leave connections to
 * Postgres for others, and so that one iteration of the event loop builds few large answers: a page of 2 MB takes 5 to
 * 10 ms. Of one account, 50 such pages at a time left other calls waiting for up to 4.9 s, or without a connection.
 */
const LISTS = { concurrency: 8, concurrencyPerCaller: 2, maxWaiting: 2_000, items: 'lists' };

/**
 * Limits concurrent calls whose answers may be large, and the messages of such streams. The queue is fair by account,
 * and by method for calls without one: audits of scans, which take minutes, must not hold up the sessions of the
 * dashboard. It must run after admission.
 */
export function limitLists(): Interceptor {
  const queue = fairQueue(LISTS);
  return (next) => (request) => {
    if (!returnsList(request.method)) return next(request);
    const caller = fairnessKey(request.contextValues.get(callerKey), request.method.name);
    /**
     * Does the work in a slot of the queue, released one iteration later: by then the server has serialized the result.
     */
    const inTurn = <Result>(work: () => Promise<Result>) =>
      new Promise<Result>((resolve, reject) => {
        queue(caller, request.signal, async () => {
          await work().then(resolve, reject);
          await nextIteration();
        }).catch(reject);
      });
    if (!request.stream) return inTurn(() => next(request));
    return next(request).then((response) =>
      response.stream ? { ...response, message: eachInTurn(response.message, inTurn) } : response,
    );
  };
}

/** Whether a method's answers contain lists of messages of any length, as pages and reports do. */
function returnsList({ output }: DescMethod): boolean {
  return output.fields.some(({ fieldKind, message }) => message && (fieldKind === 'list' || message === FiguresSchema));
}
