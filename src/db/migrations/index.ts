import type { MigrationObject } from '@mikro-orm/core';
import { AccountsAndCodes } from './0001-accounts-and-codes.ts';
import { Log } from './0002-log.ts';
import { Scans } from './0003-scans.ts';
import { Audit } from './0004-audit.ts';
import { Batches } from './0005-batches.ts';
import { Webhooks } from './0006-webhooks.ts';
import { DomainChecks } from './0007-domain-checks.ts';
import { Upkeep } from './0008-upkeep.ts';
import { ScanLedger } from './0009-scan-ledger.ts';
import { ListedCodes } from './0010-listed-codes.ts';
import { RowWarnings } from './0011-row-warnings.ts';
import { LogPerTopic } from './0012-log-per-topic.ts';
import { VerifiedHostnames } from './0013-verified-hostnames.ts';
import { WebhookVerification } from './0014-webhook-verification.ts';
import { KeptOutbox } from './0015-kept-outbox.ts';
import { ScanRollups } from './0016-scan-rollups.ts';
import { RelabelledCodes } from './0017-relabelled-codes.ts';
import { FoldedNames } from './0018-folded-names.ts';
import { Targets } from './0019-targets.ts';
import { TargetChanges } from './0021-target-changes.ts';
import { ScanTargets } from './0022-scan-targets.ts';

/** In the order in which they run. A released migration is never changed. */
export const migrations: MigrationObject[] = [
  { name: '0001-accounts-and-codes', class: AccountsAndCodes },
  { name: '0002-log', class: Log },
  { name: '0003-scans', class: Scans },
  { name: '0004-audit', class: Audit },
  { name: '0005-batches', class: Batches },
  { name: '0006-webhooks', class: Webhooks },
  { name: '0007-domain-checks', class: DomainChecks },
  { name: '0008-upkeep', class: Upkeep },
  { name: '0009-scan-ledger', class: ScanLedger },
  { name: '0010-listed-codes', class: ListedCodes },
  { name: '0011-row-warnings', class: RowWarnings },
  { name: '0012-log-per-topic', class: LogPerTopic },
  { name: '0013-verified-hostnames', class: VerifiedHostnames },
  { name: '0014-webhook-verification', class: WebhookVerification },
  { name: '0015-kept-outbox', class: KeptOutbox },
  { name: '0016-scan-rollups', class: ScanRollups },
  { name: '0017-relabelled-codes', class: RelabelledCodes },
  { name: '0018-folded-names', class: FoldedNames },
  { name: '0019-targets', class: Targets },
  { name: '0021-target-changes', class: TargetChanges },
  { name: '0022-scan-targets', class: ScanTargets },
];
