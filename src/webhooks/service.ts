import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Cursors } from '../../common/contract/cursors.ts';
import { failure } from '../../common/contract/errors.ts';
import { fieldsToUpdate } from '../../common/contract/field-mask.ts';
import { encodeId, newUuid } from '../../common/contract/ids.ts';
import { pageById } from '../../common/contract/paging.ts';
import { PAGE_LIMIT } from '../../common/contract/ranges.ts';
import type { WebhooksService } from '../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { recordChange } from '../access/audit.ts';
import { accountOf } from '../access/caller.ts';
import { ormTransactionOf } from '../access/commit-limit.ts';
import type { Database } from '../db/database.ts';
import { connectionOf } from '../db/orm-transaction.ts';
import { addTestDelivery, findDelivery, listAttempts, listDeliveries, resend, resendFailed } from './deliveries.ts';
import { readEndpointUrl } from './endpoint-url.ts';
import {
  disableEndpoint,
  endpointMessage,
  endpointUuid,
  findEndpoint,
  insertEndpoint,
  isEnabled,
  listEndpoints,
  lockEndpoint,
  readEvents,
  rotateSecret,
} from './endpoints.ts';
import type { EndpointEntity } from './entities.ts';
import type { Seal } from './seal.ts';
import { newSecret } from './signature.ts';

const SWITCHED_OFF = 'It was switched off.';

export interface WebhooksOptions {
  readonly database: Database;
  /** Of deliveries, by id; of attempts, by their time. */
  readonly cursors: { readonly byId: Cursors; readonly byName: Cursors };
  readonly seal: Seal;
  /** Endpoints may be http and on private addresses. */
  readonly allowPrivate: boolean;
}

/** Webhook endpoints and their deliveries, for internal services. */
export function webhooksService({
  database,
  cursors,
  seal,
  allowPrivate,
}: WebhooksOptions): ServiceImpl<typeof WebhooksService> {
  const { orm, pool } = database;

  /** Changes something of an endpoint, which stays locked meanwhile, and leaves the change in the audit. */
  function changing<Result>(
    context: HandlerContext,
    endpoint: string,
    work: (em: EntityManager, endpoint: EndpointEntity, accountId: string) => Promise<Result>,
    subject = encodeId('hook', endpoint),
  ): Promise<Result> {
    const { id: accountId } = accountOf(context);
    return ormTransactionOf(context, orm, async (em, tx) => {
      const result = await work(em, await lockEndpoint(em, accountId, endpoint), accountId);
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
      const { id: accountId } = accountOf(context);
      return ormTransactionOf(context, orm, async (em, tx) => {
        const endpoint = await insertEndpoint(em, { id, accountId, url, events, secret: seal.seal(id, secret) });
        await addTestDelivery(em, accountId, id);
        await recordChange(tx, context, encodeId('hook', id));
        return { endpoint: endpointMessage(endpoint), secret };
      });
    },
    async listEndpoints(_, context) {
      return { endpoints: (await listEndpoints(orm.em.fork(), accountOf(context).id)).map(endpointMessage) };
    },
    async updateEndpoint(request, context) {
      const { id: accountId } = accountOf(context);
      const id = endpointUuid(request.id);
      const fields = fieldsToUpdate(request.updateMask, {
        url: request.url !== undefined,
        events: request.events.length > 0,
        enabled: request.enabled !== undefined,
      });
      const url = fields.has('url') ? readEndpointUrl(request.url ?? '', allowPrivate) : undefined;
      const events = fields.has('events') ? readEvents(request.events) : undefined;
      return ormTransactionOf(context, orm, async (em, tx) => {
        const endpoint = await lockEndpoint(em, accountId, id);
        const was = isEnabled(endpoint);
        const enabled = fields.has('enabled') ? (request.enabled ?? was) : was;
        const moved = url !== undefined && url !== endpoint.url;
        if (enabled === was && !moved && (!events || sameEvents(events, endpoint.events))) {
          return { endpoint: endpointMessage(endpoint) };
        }
        if (url !== undefined) endpoint.url = url;
        if (events !== undefined) endpoint.events = events;
        if (enabled) endpoint.disabledReason = null;
        else if (was) {
          endpoint.disabledReason = SWITCHED_OFF;
          await disableEndpoint(tx, accountId, id, SWITCHED_OFF);
        }
        // Whoever is at another address has not agreed to be called, and whoever did not answer may not any more. It is
        // as good as new then, and has another five days.
        const unverified = moved || (enabled && !was);
        if (unverified) Object.assign(endpoint, { verifiedAt: null, failingSince: null, attemptAfter: null });
        await em.flush();
        if (enabled && unverified) await addTestDelivery(em, accountId, id);
        await recordChange(tx, context, encodeId('hook', id));
        return { endpoint: endpointMessage(endpoint) };
      });
    },
    async deleteEndpoint(request, context) {
      // Its deliveries and their attempts go by their foreign keys.
      await changing(context, endpointUuid(request.id), (em, endpoint) => em.remove(endpoint).flush());
      return {};
    },
    async rotateSecret(request, context) {
      const secret = newSecret();
      await changing(context, endpointUuid(request.id), (em, { id }, accountId) =>
        rotateSecret(em, accountId, id, seal.seal(id, secret)),
      );
      return { secret };
    },
    async sendTestEvent(request, context) {
      const delivery = await changing(context, endpointUuid(request.id), (em, endpoint, accountId) =>
        addTestDelivery(em, accountId, enabled(endpoint).id),
      );
      return { delivery };
    },
    async listDeliveries(request, context) {
      const { id: accountId } = accountOf(context);
      const { id: endpointId } = await findEndpoint(orm.em.fork(), accountId, endpointUuid(request.endpointId));
      const page = pageById([cursors.byId, `deliveries ${accountId}`], request, PAGE_LIMIT);
      return listDeliveries(database, accountId, { endpointId, status: request.status, page });
    },
    async listAttempts({ deliveryId, ...asked }, context) {
      const delivery = await findDelivery(orm.em.fork(), accountOf(context).id, deliveryId);
      return listAttempts(pool, delivery, asked, cursors.byName);
    },
    async resendDelivery(request, context) {
      const found = await findDelivery(orm.em.fork(), accountOf(context).id, request.id);
      const send = (em: EntityManager, endpoint: EndpointEntity, accountId: string) => {
        enabled(endpoint);
        return resend(em, accountId, found);
      };
      return { delivery: await changing(context, found.endpointId, send, encodeId('dlv', found.id)) };
    },
    async resendFailed(request, context) {
      // The constraint on the request leaves no other value than a time; it may still be none that dates know.
      const since = request.since ? timestampDate(request.since) : new Date();
      if (Number.isNaN(since.getTime())) throw failure('INVALID_FIELD', 'since: must be a time.');
      const deliveries = await changing(context, endpointUuid(request.endpointId), (em, endpoint, accountId) =>
        resendFailed(connectionOf(em), accountId, enabled(endpoint).id, since),
      );
      return { deliveries };
    },
  };
}

/** An endpoint that something can be sent to. */
function enabled(endpoint: EndpointEntity): EndpointEntity {
  if (isEnabled(endpoint)) return endpoint;
  throw failure('INVALID_FIELD', 'id: this endpoint is disabled; enable it first.');
}

function sameEvents(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((type) => other.includes(type));
}
