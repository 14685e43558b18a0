import type { ScopeMetrics } from '@opentelemetry/sdk-metrics';
import type { Telemetry } from '../../common/telemetry/start.ts';
import { onMessageFromMain, sendToMain } from './messages.ts';
import type { SupervisedProcess } from './supervised-process.ts';

/** How long a process may take to send its metrics, in ms. */
const ANSWER_MS = 2_000;

/** Collects the metrics of the processes that the main process has started. */
export interface MetricsCollector {
  /** Takes what a process has sent; an answer that nobody waits for any more is ignored. */
  receive(collection: number, scopes: readonly ScopeMetrics[]): void;
  /** The metrics of each process by its name; undefined for one that does not answer in time. */
  collect(): Promise<Map<string, readonly ScopeMetrics[] | undefined>>;
}

/** `processes`: by name. */
export function collectMetrics(processes: () => ReadonlyMap<string, SupervisedProcess>): MetricsCollector {
  const pending = new Map<number, (scopes: readonly ScopeMetrics[] | undefined) => void>();
  let last = 0;

  function ask(process: SupervisedProcess): Promise<readonly ScopeMetrics[] | undefined> {
    const collection = ++last;
    return new Promise((resolve) => {
      const end = (scopes: readonly ScopeMetrics[] | undefined) => {
        pending.delete(collection);
        clearTimeout(timer);
        resolve(scopes);
      };
      const timer = setTimeout(() => end(undefined), ANSWER_MS);
      pending.set(collection, end);
      process.send({ type: 'collect', collection });
    });
  }

  return {
    receive: (collection, scopes) => pending.get(collection)?.(scopes),
    async collect() {
      const asked = [...processes()].map(async ([name, process]) => [name, await ask(process)] as const);
      return new Map(await Promise.all(asked));
    },
  };
}

/** Answers the main process's requests for the metrics of this one. */
export function sendMetricsOnRequest(telemetry: Telemetry): void {
  onMessageFromMain((message) => {
    if (message.type !== 'collect') return;
    const { collection } = message;
    telemetry.collect().then(
      (scopes) => sendToMain({ type: 'metrics', collection, scopes }),
      // The main process reports that this one has not answered.
      () => undefined,
    );
  });
}
