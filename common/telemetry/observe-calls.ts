import { type Code, ConnectError } from '@connectrpc/connect';
import { type Context, context, metrics, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { contextWith } from './active-span.ts';
import { durations, secondsSince } from './durations.ts';
import { type RpcSystem, statusName } from './rpc-status.ts';

/** A call to the core. */
export interface ObservedCall {
  /** The context of its span, which the core's continues. */
  readonly tracing: Context;
  /** Measures the call and ends its span; only the first time. `code`: of its error; undefined if it succeeded. */
  end(code?: Code): void;
}

/** Measures calls to the core, each in a span. `method`: `package.Service/Method`. */
export interface CallObserver {
  start(method: string): ObservedCall;
  /** Runs a call, which rejects if it fails, in the context of its span. */
  run<Result>(method: string, call: () => Promise<Result>): Promise<Result>;
}

/** Named by OpenTelemetry's conventions for RPC. `scope`: the part of Signpost that calls. */
export function observeCalls(scope: string, system: RpcSystem): CallObserver {
  const tracer = trace.getTracer(scope);
  const duration = metrics
    .getMeter(scope)
    .createHistogram('rpc.client.call.duration', durations('Duration of calls to the core, by method and status'));

  function start(method: string): ObservedCall {
    const startedAt = performance.now();
    const attributes = { 'rpc.system.name': system, 'rpc.method': method };
    const parent = context.active();
    const span = tracer.startSpan(method, { kind: SpanKind.CLIENT, attributes }, parent);
    let hasEnded = false;
    return {
      tracing: contextWith(span, parent),
      end(code) {
        if (hasEnded) return;
        hasEnded = true;
        const status = statusName(code, system);
        const outcome = {
          'rpc.response.status_code': status,
          ...(code !== undefined && { 'error.type': status }),
        };
        duration.record(secondsSince(startedAt), { ...attributes, ...outcome });
        span.setAttributes(outcome);
        if (code !== undefined) span.setStatus({ code: SpanStatusCode.ERROR });
        span.end();
      },
    };
  }

  return {
    start,
    async run(method, call) {
      const { tracing, end } = start(method);
      try {
        const result = await context.with(tracing, call);
        end();
        return result;
      } catch (error) {
        end(ConnectError.from(error).code);
        throw error;
      }
    },
  };
}
