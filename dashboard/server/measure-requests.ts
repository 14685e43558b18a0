import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { observeRequests } from '../../common/telemetry/observe-requests.ts';

/** Probes ask every few seconds, and would hide how many of people's requests fail. */
const NOT_MEASURED: readonly (string | undefined)[] = ['/healthz', '/readyz'];

/** Measures requests by route, and answers them in their spans. Call before other hooks are added. */
export function measureRequests(app: FastifyInstance): void {
  const observed = observeRequests('signpost.dashboard');
  app.addHook('onRequest', (request, reply, done) => {
    const route = request.routeOptions.url;
    if (NOT_MEASURED.includes(route)) return done();
    void observed(route, request.raw, () => {
      const status = statusOf(reply.raw);
      done();
      return status;
    });
  });
}

/** The status of an answer, once it is complete; 499 if the connection was closed before. */
async function statusOf(response: ServerResponse): Promise<number> {
  await once(response, 'close');
  return response.writableFinished ? response.statusCode : 499;
}
