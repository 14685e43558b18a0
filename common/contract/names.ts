import { Plan, Role } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { RowStatus } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { CodeType } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { DomainState } from '../../proto/gen/signpost/domains/v1/domains_pb.ts';
import { DeliveryStatus } from '../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';

// Names of enum values in REST, events, the database and the command line.

export const PLAN_BY_NAME = {
  free: Plan.FREE,
  business: Plan.BUSINESS,
  scale: Plan.SCALE,
  enterprise: Plan.ENTERPRISE,
} as const;
export type PlanName = keyof typeof PLAN_BY_NAME;

export const ROLE_BY_NAME = {
  owner: Role.OWNER,
  admin: Role.ADMIN,
  editor: Role.EDITOR,
  viewer: Role.VIEWER,
} as const;
export type RoleName = keyof typeof ROLE_BY_NAME;

export const CODE_TYPE_BY_NAME = {
  dynamic: CodeType.DYNAMIC,
  static: CodeType.STATIC,
  landing_page: CodeType.LANDING_PAGE,
} as const;
export type CodeTypeName = keyof typeof CODE_TYPE_BY_NAME;

export const ROW_STATUS_BY_NAME = {
  pending: RowStatus.PENDING,
  created: RowStatus.CREATED,
  failed: RowStatus.FAILED,
  skipped: RowStatus.SKIPPED,
} as const;

/** States of a domain. Source: docs/contract.md, "Domains". */
export const DOMAIN_STATE_BY_NAME = {
  pending: DomainState.PENDING,
  verified: DomainState.VERIFIED,
  live: DomainState.LIVE,
  failing: DomainState.FAILING,
} as const;
export type DomainStateName = keyof typeof DOMAIN_STATE_BY_NAME;

export const DELIVERY_STATUS_BY_NAME = {
  pending: DeliveryStatus.PENDING,
  succeeded: DeliveryStatus.SUCCEEDED,
  failed: DeliveryStatus.FAILED,
} as const;
export type DeliveryStatusName = keyof typeof DELIVERY_STATUS_BY_NAME;

/** The names in such a mapping. */
export function namesOf<Name extends string>(byName: Readonly<Record<Name, number>>): Name[] {
  return Object.keys(byName) as Name[];
}

/** The name of a value. Throws if it has none, which constraints on requests and the core prevent. */
export function nameOf<Name extends string>(byName: Readonly<Record<Name, number>>, value: number): Name {
  const found = namesOf(byName).find((name) => byName[name] === value);
  if (found === undefined) throw new TypeError(`${value} is none of ${namesOf(byName).join(', ')}`);
  return found;
}
