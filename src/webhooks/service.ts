import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import type { Pool, PoolClient } from 'pg';
import type { Cursors } from '../../common/contract/cursors.ts';
import { failure } from '../../common/contract/errors.ts';
import { encodeId, newUuid } from '../../common/contract/ids.ts';
import { PAGE, pageById } from '../../common/contract/paging.ts';
import type { WebhooksService } from '../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { recordChange } from '../access/audit.ts';
import { accountOf } from '../access/caller.ts';
import { transactionOf } from '../access/commit-limit.ts';
import { addTestDelivery, findDelivery, listAttempts, listDeliveries, resend, resendFailed } from './deliveries.ts';
import { readEndpointUrl } from './endpoint-url.ts';
import {
  deleteEndpoint,
  disableEndpoint,
  type EndpointRow,
  endpointMessage,
  endpointUuid,
  findEndpoint,
  insertEndpoint,
  listEndpoints,
  lockEndpoint,
  readEvents,
  rotateSecret,
  updateEndpoint,
} from './endpoints.ts';
import type { Seal } from './seal.ts';
import { newSecret } from './signature.ts';

const SWITCHED_OFF = 'It was switched off.';

export interface WebhooksOptions {
  readonly pool: Pool;
  /** Of deliveries, by id; of attempts, by their time. */
  readonly cursors: { readonly byId: Cursors; readonly byName: Cursors };
  readonly seal: Seal;
  /** Endpoints may be http and on private addresses. */
  readonly allowPrivate: boolean;
}

/** Webhook endpoints and their deliveries, for internal services. */
export function webhooksService({
  pool,
  cursors,
  seal,
  allowPrivate,
}: WebhooksOptions): ServiceImpl<typeof WebhooksService> {
  /** Changes something of an endpoint, which stays locked meanwhile, and leaves the change in the audit. */
  function changing<Result>(
    context: HandlerContext,
    endpoint: string,
    work: (tx: PoolClient, endpoint: EndpointRow, account: string) => Promise<Result>,
    subject = encodeId('hook', endpoint),
  ): Promise<Result> {
    const { id: account } = accountOf(context);
    return transactionOf(context, pool, async (tx) => {
      const result = await work(tx, await lockEndpoint(tx, account, endpoint), account);
      await recordChange(tx, context, subject);
      return result;
    });
  }

  return {
    async createEndpoint(request, context) {
      const url = readEndpointUrl(request.url, allowPrivate);
      const events = readEvents(request.events);
      const id = newUuid();
      const secret = newSecret();
      const row = { id, account: accountOf(context).id, url, events, secret: seal.seal(id, secret) };
      return transactionOf(context, pool, async (tx) => {
        const endpoint = await insertEndpoint(tx, row);
        await addTestDelivery(tx, row.account, id);
        await recordChange(tx, context, encodeId('hook', id));
        return { endpoint: endpointMessage(endpoint), secret };
      });
    },
    async listEndpoints(_, context) {
      return { endpoints: (await listEndpoints(pool, accountOf(context).id)).map(endpointMessage) };
    },
    async updateEndpoint(request, context) {
      const { id: account } = accountOf(context);
      const id = endpointUuid(request.id);
      const url = request.url === undefined ? undefined : readEndpointUrl(request.url, allowPrivate);
      const events = request.events.length === 0 ? undefined : readEvents(request.events);
      return transactionOf(context, pool, async (tx) => {
        const before = await lockEndpoint(tx, account, id);
        const was = before.disabled_reason === null;
        const { enabled = was } = request;
        const wanted = { id, url: url ?? before.url, events: events ?? before.events };
        const same = enabled === was && wanted.url === before.url && sameEvents(wanted.events, before.events);
        if (same) return { endpoint: endpointMessage(before) };
        const reason = enabled ? null : (before.disabled_reason ?? SWITCHED_OFF);
        if (was && reason !== null) await disableEndpoint(tx, account, id, reason);
        // Whoever is at another address has not agreed to be called, and whoever did not answer may not any more.
        const unverified = wanted.url !== before.url || (enabled && !was);
        const endpoint = await updateEndpoint(tx, account, { ...wanted, disabled_reason: reason, unverified });
        if (enabled && unverified) await addTestDelivery(tx, account, id);
        await recordChange(tx, context, encodeId('hook', id));
        return { endpoint: endpointMessage(endpoint) };
      });
    },
    async deleteEndpoint(request, context) {
      await changing(context, endpointUuid(request.id), (tx, { id }, account) => deleteEndpoint(tx, account, id));
      return {};
    },
    async rotateSecret(request, context) {
      const secret = newSecret();
      await changing(context, endpointUuid(request.id), (tx, { id }, account) =>
        rotateSecret(tx, account, id, seal.seal(id, secret)),
      );
      return { secret };
    },
    async sendTestEvent(request, context) {
      const delivery = await changing(context, endpointUuid(request.id), (tx, endpoint, account) =>
        addTestDelivery(tx, account, enabled(endpoint).id),
      );
      return { delivery };
    },
    async listDeliveries(request, context) {
      const { id: account } = accountOf(context);
      const { id: endpoint } = await findEndpoint(pool, account, endpointUuid(request.endpointId));
      const page = pageById([cursors.byId, `deliveries ${account}`], request, PAGE);
      return listDeliveries(pool, account, { endpoint, status: request.status, page });
    },
    async listAttempts({ deliveryId, ...asked }, context) {
      return listAttempts(pool, await findDelivery(pool, accountOf(context).id, deliveryId), asked, cursors.byName);
    },
    async resendDelivery(request, context) {
      const found = await findDelivery(pool, accountOf(context).id, request.id);
      const send = (tx: PoolClient, endpoint: EndpointRow, account: string) => {
        enabled(endpoint);
        return resend(tx, account, found);
      };
      return { delivery: await changing(context, found.endpoint_id, send, encodeId('dlv', found.id)) };
    },
    async resendFailed(request, context) {
      // The constraint on the request leaves no other value than a time; it may still be none that dates know.
      const since = request.since ? timestampDate(request.since) : new Date();
      if (Number.isNaN(since.getTime())) throw failure('INVALID_FIELD', 'since: must be a time.');
      const deliveries = await changing(context, endpointUuid(request.endpointId), (tx, endpoint, account) =>
        resendFailed(tx, account, enabled(endpoint).id, since),
      );
      return { deliveries };
    },
  };
}

/** An endpoint that something can be sent to. */
function enabled(endpoint: EndpointRow): EndpointRow {
  if (endpoint.disabled_reason === null) return endpoint;
  throw failure('INVALID_FIELD', 'id: this endpoint is disabled; enable it first.');
}

function sameEvents(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((type) => other.includes(type));
}
