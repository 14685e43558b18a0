import type { DescService } from '@bufbuild/protobuf';
import {
  type Client,
  createClient,
  createRouterTransport,
  type Interceptor,
  type ServiceImpl,
} from '@connectrpc/connect';
import { pino } from 'pino';
import { type Account, callerKey } from '../access/caller.ts';
import { observe } from './observe.ts';
import { validate } from './validate.ts';

/**
 * A client of a service in this process, as an internal caller that acts for `account`, which may do everything unless
 * it says otherwise. Calls pass the interceptors that `serve` sets, except that the caller is given.
 */
export function serviceClient<Service extends DescService>(
  service: Service,
  implementation: ServiceImpl<Service>,
  account: Pick<Account, 'id'> & Partial<Account>,
): Client<Service> {
  const caller = {
    features: { api: true, bulk: true, images: true },
    codeLimit: null,
    batchLimit: 1_000,
    ...account,
  };
  const asAccount: Interceptor = (next) => (request) => {
    request.contextValues.set(callerKey, { kind: 'service', account: caller, actor: 'a test' });
    return next(request);
  };
  const interceptors = [observe(pino({ level: 'silent' })).interceptor, asAccount, validate];
  const transport = createRouterTransport((router) => void router.service(service, implementation), {
    router: { interceptors },
  });
  return createClient(service, transport);
}
