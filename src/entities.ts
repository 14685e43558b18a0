import {
  AccountEntity,
  ApiKeyEntity,
  ApiRequestCountEntity,
  ApiRequestEntity,
  AuditEntryEntity,
  IdempotencyEntity,
  MeterEntity,
} from './access/entities.ts';
import { EndedSessionEntity } from './accounts/ended-sessions.ts';
import { MemberEntity } from './accounts/member.ts';
import { SignInLinkEntity } from './accounts/sign-in-links.ts';
import { BatchEntity, BatchRowEntity } from './batches/entities.ts';
import { CodeCountEntity, CodeEntity, RelabelledCodeEntity, TargetVersionEntity } from './codes/entities.ts';
import { DomainEntity } from './domains/domain.ts';
import { VerifiedHostnameEntity } from './domains/verified-hostname.ts';
import { OutboxEntity, OutboxPositionEntity, RoutesDueEntity } from './events/entities.ts';
import * as scans from './scans/entities.ts';
import { TargetChangeEntity, TargetChangeRowEntity } from './targets/changes/entities.ts';
import { CodeTagEntity, FolderEntity, TagEntity } from './taxonomy/entities.ts';
import { AttemptBudgetEntity, AttemptEntity, DeliveryEntity, EndpointEntity } from './webhooks/entities.ts';

/** Every entity of the modules: each table that a service reads or writes. */
export const entities = [
  AccountEntity,
  ApiKeyEntity,
  ApiRequestCountEntity,
  ApiRequestEntity,
  AttemptBudgetEntity,
  AttemptEntity,
  AuditEntryEntity,
  BatchEntity,
  BatchRowEntity,
  CodeCountEntity,
  CodeEntity,
  CodeTagEntity,
  DeliveryEntity,
  DomainEntity,
  EndedSessionEntity,
  EndpointEntity,
  FolderEntity,
  IdempotencyEntity,
  MemberEntity,
  MeterEntity,
  OutboxEntity,
  OutboxPositionEntity,
  RelabelledCodeEntity,
  RoutesDueEntity,
  SignInLinkEntity,
  TagEntity,
  TargetChangeEntity,
  TargetChangeRowEntity,
  TargetVersionEntity,
  VerifiedHostnameEntity,
  ...Object.values(scans),
];
