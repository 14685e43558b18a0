import type { DescService } from '@bufbuild/protobuf';
import { Health } from '../../proto/gen/grpc/health/v1/health_pb.ts';
import { ServerReflection } from '../../proto/gen/grpc/reflection/v1/reflection_pb.ts';
import { AdmissionService } from '../../proto/gen/signpost/access/v1/admission_pb.ts';
import { AccountsService } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { AnalyticsService } from '../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import { BatchesService } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { DomainsService } from '../../proto/gen/signpost/domains/v1/domains_pb.ts';
import { EventsService } from '../../proto/gen/signpost/events/v1/events_pb.ts';
import { ImagesService } from '../../proto/gen/signpost/images/v1/images_pb.ts';
import { ScansService } from '../../proto/gen/signpost/scans/v1/scans_pb.ts';
import { TaxonomyService } from '../../proto/gen/signpost/taxonomy/v1/taxonomy_pb.ts';
import { WebhooksService } from '../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';

/** Every service that a core serves, health and reflection included. */
export const RPC_SERVICES: readonly DescService[] = [
  AccountsService,
  AdmissionService,
  AnalyticsService,
  BatchesService,
  CodesService,
  DomainsService,
  EventsService,
  Health,
  ImagesService,
  ScansService,
  ServerReflection,
  TaxonomyService,
  WebhooksService,
];
