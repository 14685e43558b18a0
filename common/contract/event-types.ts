/** All event types that Signpost publishes. Source: docs/contract.md, "Events". */
export const EVENT_TYPES = [
  'qr.created',
  'qr.updated',
  'qr.archived',
  'bulk.completed',
  'domain.live',
  'team.member_added',
  'team.member_removed',
] as const;

export type EventType = (typeof EVENT_TYPES)[number];
