import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import type { EntityManager } from '@mikro-orm/postgresql';
import { failure } from '../../common/contract/errors.ts';
import { encodeId, newUuid } from '../../common/contract/ids.ts';
import { PAGE_LIMIT } from '../../common/contract/ranges.ts';
import type { WebhooksService } from '../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { recordChange } from '../access/audit.ts';
import { ormTransactionOf } from '../access/call-transaction.ts';
import { accountOf } from '../access/caller.ts';
import type { Cursors } from '../calls/cursors.ts';
import { fieldsToUpdate } from '../calls/field-mask.ts';
import { instantOrFailure } from '../calls/instants.ts';
import { pageById } from '../calls/paging.ts';
import type { Database } from '../db/database.ts';
import { connectionOf } from '../db/orm-transaction.ts';
import { addTestDelivery, findDelivery, listAttempts, listDeliveries, resend, resendFailed } from './deliveries.ts';
import { changeEndpoint } from './endpoints/change-endpoint.ts';
import { deleteEndpoint } from './endpoints/delete-endpoint.ts';
import { failPending } from './endpoints/disable-endpoint.ts';
import { readEndpointUrl } from './endpoints/endpoint-url.ts';
import {
  endpointMessage,
  endpointUuid,
  findEndpoint,
  insertEndpoint,
  isEnabled,
  listEndpoints,
  lockEndpoint,
  readEvents,
  rotateSecret,
} from './endpoints/endpoints.ts';
import type { EndpointEntity } from './entities.ts';
import type { SecretCipher } from './secret-cipher.ts';
import { newSecret } from './signature.ts';

export interface WebhooksServiceOptions {
  readonly database: Database;
  /** `byId`: of lists of deliveries; `byName`: of lists of attempts, whose position is a time. */
  readonly cursors: { readonly byId: Cursors; readonly byName: Cursors };
  readonly secretCipher: SecretCipher;
  /** Whether endpoints may use http and private addresses. */
  readonly allowPrivate: boolean;
}

/** Implements WebhooksService: webhook endpoints and their deliveries. */
export function webhooksService({
  database,
  cursors,
  secretCipher,
  allowPrivate,
}: WebhooksServiceOptions): ServiceImpl<typeof WebhooksService> {
  const { orm } = database;

  /** Makes a change while the endpoint is locked, and records it in the audit log as a change of `subject`. */
  function changeLocked<Result>(
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
        const endpoint = await insertEndpoint(em, {
          id,
          accountId,
          url,
          events,
          secret: secretCipher.encrypt(id, secret),
        });
        await addTestDelivery(em, accountId, id);
        await recordChange(tx, context, encodeId('hook', id));
        return { endpoint: endpointMessage(endpoint), secret };
      });
    },
    async listEndpoints(_, context) {
      return { endpoints: await listEndpoints(database, accountOf(context).id) };
    },
    async updateEndpoint(request, context) {
      const { id: accountId } = accountOf(context);
      const id = endpointUuid(request.id);
      const fields = fieldsToUpdate(request.updateMask, {
        url: request.url !== undefined,
        events: request.events.length > 0,
        enabled: request.enabled !== undefined,
      });
      const changes = {
        url: fields.has('url') ? readEndpointUrl(request.url ?? '', allowPrivate) : undefined,
        events: fields.has('events') ? readEvents(request.events) : undefined,
        enabled: fields.has('enabled') ? request.enabled : undefined,
      };
      const change = () =>
        ormTransactionOf(context, orm, async (em, tx) => {
          const endpoint = await lockEndpoint(em, accountId, id);
          // What failed when it was disabled must not be sent once it is enabled.
          if (changes.enabled && !isEnabled(endpoint) && (await failPending(tx, id))) return undefined;
          if (await changeEndpoint(em, endpoint, changes)) await recordChange(tx, context, encodeId('hook', id));
          return { endpoint: endpointMessage(endpoint) };
        });
      let changed: Awaited<ReturnType<typeof change>>;
      do changed = await change();
      while (changed === undefined);
      return changed;
    },
    async deleteEndpoint(request, context) {
      await changeLocked(context, endpointUuid(request.id), (em, { id }) => deleteEndpoint(connectionOf(em), id));
      return {};
    },
    async rotateSecret(request, context) {
      const secret = newSecret();
      await changeLocked(context, endpointUuid(request.id), (em, { id }, accountId) =>
        rotateSecret(em, accountId, id, secretCipher.encrypt(id, secret)),
      );
      return { secret };
    },
    async sendTestEvent(request, context) {
      const delivery = await changeLocked(context, endpointUuid(request.id), (em, endpoint, accountId) =>
        addTestDelivery(em, accountId, expectEnabled(endpoint, 'id: this endpoint').id),
      );
      return { delivery };
    },
    async listDeliveries(request, context) {
      const { id: accountId } = accountOf(context);
      const { id: endpointId } = await findEndpoint(orm.em.fork(), accountId, endpointUuid(request.endpointId));
      const page = pageById([cursors.byId, `deliveries ${accountId}`], request, PAGE_LIMIT);
      return listDeliveries(database, accountId, { endpointId, status: request.status, page });
    },
    async listAttempts({ deliveryId, ...page }, context) {
      return listAttempts(database, accountOf(context).id, { deliveryId, page }, cursors.byName);
    },
    async resendDelivery(request, context) {
      const delivery = await findDelivery(orm.em.fork(), accountOf(context).id, request.id);
      const send = (em: EntityManager, endpoint: EndpointEntity, accountId: string) => {
        expectEnabled(endpoint, 'id: the endpoint of this delivery');
        return resend(em, accountId, delivery);
      };
      return { delivery: await changeLocked(context, delivery.endpointId, send, encodeId('dlv', delivery.id)) };
    },
    async resendFailed(request, context) {
      const since = instantOrFailure('since', request.since) ?? new Date();
      return changeLocked(context, endpointUuid(request.endpointId), (em, endpoint, accountId) =>
        resendFailed(connectionOf(em), accountId, expectEnabled(endpoint, 'endpoint_id: this endpoint').id, since),
      );
    },
  };
}

/** Returns an endpoint that is enabled, or fails with INVALID_FIELD. `subject`: the field and what it names. */
function expectEnabled(endpoint: EndpointEntity, subject: string): EndpointEntity {
  if (isEnabled(endpoint)) return endpoint;
  throw failure('INVALID_FIELD', `${subject} is disabled; enable it first.`);
}
