import { type DescMethod, type DescService, getOption, hasOption } from '@bufbuild/protobuf';
import { methodName } from '../../common/contract/method-name.ts';
import { Caller, MemberRole, requires } from '../../proto/gen/signpost/access/v1/requirements_pb.ts';
import { AccountsService } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { AnalyticsService } from '../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import { BatchesService } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { DomainsService } from '../../proto/gen/signpost/domains/v1/domains_pb.ts';
import { ImagesService } from '../../proto/gen/signpost/images/v1/images_pb.ts';
import { TargetsService } from '../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { TaxonomyService } from '../../proto/gen/signpost/taxonomy/v1/taxonomy_pb.ts';
import { WebhooksService } from '../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';

const SERVICES: readonly DescService[] = [
  AccountsService,
  AnalyticsService,
  BatchesService,
  CodesService,
  DomainsService,
  ImagesService,
  TargetsService,
  TaxonomyService,
  WebhooksService,
];

/**
 * The methods that browsers may call, by `package.Service/Method`: those that act for an account, and that some role
 * allows. Whether the member's role does is for the core to decide, with each call.
 */
export const MEMBER_METHODS: ReadonlyMap<string, DescMethod> = new Map(
  SERVICES.flatMap(({ methods }) => methods)
    .filter(isForMembers)
    .map((method) => [methodName(method), method]),
);

function isForMembers(method: DescMethod): boolean {
  if (!hasOption(method, requires)) return false;
  const { caller, role } = getOption(method, requires);
  const forAccount = caller === Caller.ACCOUNT || caller === Caller.SERVICE_FOR_ACCOUNT;
  return forAccount && role >= MemberRole.VIEWER;
}
