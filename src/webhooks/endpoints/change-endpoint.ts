import type { EntityManager } from '@mikro-orm/postgresql';
import type { EventType } from '../../../common/contract/event-types.ts';
import { connectionOf } from '../../db/orm-transaction.ts';
import { addTestDelivery } from '../deliveries.ts';
import type { EndpointEntity } from '../entities.ts';
import { disableEndpoint } from './disable-endpoint.ts';
import { DISABLE_REASONS } from './disable-reasons.ts';
import { isEnabled } from './endpoints.ts';

/** The requested values of an endpoint's fields; what is undefined stays as it is. */
export interface EndpointChanges {
  readonly url: string | undefined;
  readonly events: EventType[] | undefined;
  readonly enabled: boolean | undefined;
}

/** Changes an endpoint that the transaction has locked. Returns whether any value differs. */
export async function changeEndpoint(
  em: EntityManager,
  endpoint: EndpointEntity,
  { url, events, enabled }: EndpointChanges,
): Promise<boolean> {
  const { id, accountId } = endpoint;
  const wasEnabled = isEnabled(endpoint);
  const willBeEnabled = enabled ?? wasEnabled;
  const urlChanged = url !== undefined && url !== endpoint.url;
  if (willBeEnabled === wasEnabled && !urlChanged && (!events || sameEvents(events, endpoint.events))) return false;
  if (url !== undefined) endpoint.url = url;
  if (events !== undefined) endpoint.events = events;
  if (willBeEnabled) endpoint.disabledReason = null;
  else if (wasEnabled) {
    endpoint.disabledReason = DISABLE_REASONS.switchedOff;
    await disableEndpoint(connectionOf(em), { id, accountId, reason: DISABLE_REASONS.switchedOff });
  }
  // The host at the new URL has not agreed to receive events, and one that stopped responding may no longer do so. The
  // endpoint is treated as a new one, which is disabled after another five days of failures.
  const unverified = urlChanged || (willBeEnabled && !wasEnabled);
  if (unverified) Object.assign(endpoint, { verifiedAt: null, failingSince: null, attemptAfter: null });
  await em.flush();
  if (willBeEnabled && unverified) await addTestDelivery(em, accountId, id);
  return true;
}

function sameEvents(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((type) => other.includes(type));
}
