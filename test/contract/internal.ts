import type { DescService } from '@bufbuild/protobuf';
import { type Client, createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import type { SharedSignpost } from '../harness/processes.ts';

/** A client of the core with the service token; `accountId`, `memberId`: the account and member it acts for, if any. */
export function internal<Service extends DescService>(
  { corePort, serviceToken }: Pick<SharedSignpost, 'corePort' | 'serviceToken'>,
  service: Service,
  accountId?: string,
  memberId?: string,
): Client<Service> {
  const transport = createConnectTransport({
    baseUrl: `http://127.0.0.1:${corePort}`,
    httpVersion: '1.1',
    interceptors: [
      (next) => (request) => {
        request.header.set('authorization', `Bearer ${serviceToken}`);
        request.header.set('signpost-actor', 'anna@example.com');
        if (accountId !== undefined) request.header.set('signpost-account', accountId);
        if (memberId !== undefined) request.header.set('signpost-member', memberId);
        return next(request);
      },
    ],
  });
  return createClient(service, transport);
}
