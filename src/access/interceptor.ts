import { type DescMethod, isMessage } from '@bufbuild/protobuf';
import type { HandlerContext, Interceptor, StreamRequest, UnaryRequest } from '@connectrpc/connect';
import { metrics } from '@opentelemetry/api';
import { failure, readFailure } from '../../common/contract/errors.ts';
import { METADATA } from '../../common/contract/metadata.ts';
import {
  AdmissionService,
  AuthenticateRequestSchema,
  RefuseRequestSchema,
} from '../../proto/gen/signpost/access/v1/admission_pb.ts';
import { asFailure } from '../calls/as-failure.ts';
import { type Caller, callerKey } from './caller.ts';
import { type CheckOptions, callChecker, type IncomingCall } from './check-call.ts';
import { identify, needsNoToken } from './identify.ts';
import { withRate, writeRate } from './rate-metadata.ts';

/** The access checks in front of the implementations of all methods. */
export interface Access {
  /**
   * Authenticates a call, checks its plan and rate, and puts the caller into the context: from metadata alone, before
   * anything of the message is read, decompressed or decoded. Throws when the call is rejected.
   */
  readonly admit: (context: HandlerContext) => Promise<void>;
  /**
   * Adds the rate to every answer to a call by API key, errors included (`writeRate`), and adds the call to the
   * account's list of requests.
   */
  readonly interceptor: Interceptor;
}

/**
 * Authentication, plans and rates. Source: docs/contract.md, "Authentication", "Who may call" and "Limits".
 *
 * `methodNamed` finds the method that a request rejected by a gateway was meant for.
 */
export function access(
  options: CheckOptions & { readonly methodNamed: (name: string) => DescMethod | undefined },
): Access {
  const { tokens, standardCallers, requestLog, methodNamed } = options;
  const check = callChecker(options);
  const admissions = metrics.getMeter('signpost.core').createCounter('signpost.admissions', {
    unit: '{call}',
    description: 'Calls by whether they were admitted, and if not, why',
  });

  /** Checks a call and counts the result. */
  async function checkAndCount(call: IncomingCall): Promise<Caller> {
    try {
      const caller = await check(call);
      admissions.add(1, { 'signpost.admission.result': 'admitted', 'signpost.caller.kind': caller.kind });
      return caller;
    } catch (error) {
      admissions.add(1, { 'signpost.admission.result': readFailure(asFailure(error)).reason.toLowerCase() });
      throw error;
    }
  }

  return {
    async admit({ method, requestHeader: header, values, signal }) {
      // These are checked as the method that their message names. Until then, only callers without credentials are
      // rejected.
      if (checkedByMessage(method)) identify(method, header, values, tokens);
      else {
        const call = { method, checkedAs: method, header, values, signal, rows: rowsIn(header) };
        values.set(callerKey, await checkAndCount(call));
      }
    },
    interceptor: (next) => async (request) => {
      const { contextValues: values, method, header, signal } = request;
      if (checkedByMessage(method)) {
        const checkedAs = targetMethod(request, methodNamed);
        const rows = !request.stream && isMessage(request.message, RefuseRequestSchema) ? request.message.rows : 0;
        values.set(callerKey, await checkAndCount({ method, checkedAs, header, values, signal, rows }));
      }
      const caller = values.get(callerKey);
      if (caller.kind === 'anyone' && !needsNoToken(method, values, standardCallers)) {
        throw new Error('a call reached the interceptor without admission');
      }
      if (caller.kind !== 'key') return next(request);
      const call = { accountId: caller.account.id, method, header, receivedAt: caller.receivedAt };
      try {
        const response = await next(request);
        writeRate(response.header, caller.rate);
        // The request that was authenticated follows.
        if (method !== AdmissionService.method.authenticate) {
          requestLog.add({ ...call, response: response.stream ? undefined : response.message });
        }
        return response;
      } catch (error) {
        const failed = asFailure(error, request);
        const ended = signal.aborted ? asFailure(signal.reason) : failed;
        requestLog.add({ ...call, reason: readFailure(ended).reason });
        throw withRate(failed, caller.rate);
      }
    },
  };
}

/** Whether a call can be checked only after its message is read, which is then a few kilobytes at most. */
export function checkedByMessage(method: DescMethod): boolean {
  return method === AdmissionService.method.refuse || method === AdmissionService.method.authenticate;
}

/** The number of a batch's rows as gateways announce it, or 0: the rows themselves are read only after admission. */
function rowsIn(header: Headers): number {
  const announced = header.get(METADATA.rows) ?? '';
  return /^\d{1,9}$/.test(announced) ? Number(announced) : 0;
}

/** The method whose requirements apply to a call: for those of a gateway, the one that their message names. */
function targetMethod(
  request: UnaryRequest | StreamRequest,
  methodNamed: (name: string) => DescMethod | undefined,
): DescMethod {
  if (request.stream) return request.method;
  const { message } = request;
  if (!isMessage(message, RefuseRequestSchema) && !isMessage(message, AuthenticateRequestSchema)) return request.method;
  const method = methodNamed(message.method);
  if (!method) throw failure('INVALID_FIELD', 'method: is not a method of this service.');
  return method;
}
