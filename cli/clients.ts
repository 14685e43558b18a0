import { type Client, createClient } from '@connectrpc/connect';
import { AccountsService } from '../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { AnalyticsService } from '../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import { BatchesService } from '../proto/gen/signpost/batches/v1/batches_pb.ts';
import { CodesService } from '../proto/gen/signpost/codes/v1/codes_pb.ts';
import { DomainsService } from '../proto/gen/signpost/domains/v1/domains_pb.ts';
import { EventsService } from '../proto/gen/signpost/events/v1/events_pb.ts';
import { ImagesService } from '../proto/gen/signpost/images/v1/images_pb.ts';
import { ScansService } from '../proto/gen/signpost/scans/v1/scans_pb.ts';
import { TargetsService } from '../proto/gen/signpost/targets/v1/targets_pb.ts';
import { TaxonomyService } from '../proto/gen/signpost/taxonomy/v1/taxonomy_pb.ts';
import { WebhooksService } from '../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { type CoreOptions, coreTransport } from './core-transport.ts';

/** Clients of the core's services. */
export interface CoreClients {
  readonly accounts: Client<typeof AccountsService>;
  readonly analytics: Client<typeof AnalyticsService>;
  readonly batches: Client<typeof BatchesService>;
  readonly codes: Client<typeof CodesService>;
  readonly domains: Client<typeof DomainsService>;
  readonly events: Client<typeof EventsService>;
  readonly images: Client<typeof ImagesService>;
  readonly scans: Client<typeof ScansService>;
  readonly targets: Client<typeof TargetsService>;
  readonly taxonomy: Client<typeof TaxonomyService>;
  readonly webhooks: Client<typeof WebhooksService>;
}

/** Creates clients of the services of the core at `baseUrl`. */
export function createClients(options: CoreOptions): CoreClients {
  const transport = coreTransport(options);
  return {
    accounts: createClient(AccountsService, transport),
    analytics: createClient(AnalyticsService, transport),
    batches: createClient(BatchesService, transport),
    codes: createClient(CodesService, transport),
    domains: createClient(DomainsService, transport),
    events: createClient(EventsService, transport),
    images: createClient(ImagesService, transport),
    scans: createClient(ScansService, transport),
    targets: createClient(TargetsService, transport),
    taxonomy: createClient(TaxonomyService, transport),
    webhooks: createClient(WebhooksService, transport),
  };
}
