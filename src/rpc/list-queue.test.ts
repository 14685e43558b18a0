import { createClient, createRouterTransport, type Interceptor } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { AccountsService } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { AnalyticsService } from '../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { ScansService } from '../../proto/gen/signpost/scans/v1/scans_pb.ts';
import { type Account, callerKey } from '../access/caller.ts';
import { limitLists } from './list-queue.ts';

const OTHERS = ['b', 'c', 'd'];

/**
 * A server, and calls to it as one of several accounts, or without one. `begun`: the account of each list that was
 * begun, in order.
 */
function serveLists(list: () => Promise<unknown>) {
  const begun: (string | null)[] = [];
  const asAccount: Interceptor = (next) => (request) => {
    const id = request.header.get('account');
    const account = id === null ? {} : { account: { id } as Account };
    request.contextValues.set(callerKey, { kind: 'service', ...account, actor: 'a test' });
    return next(request);
  };
  const begin = async (header: Headers) => {
    begun.push(header.get('account'));
    await list();
    return {};
  };
  const transport = createRouterTransport(
    (router) => {
      router.service(CodesService, {
        listCodes: (_, { requestHeader }) => begin(requestHeader),
        getCode: () => ({}),
      });
      router.service(AccountsService, { listEndedSessions: () => ({}) });
      router.service(ScansService, { auditScans: (_, { requestHeader }) => begin(requestHeader) });
      router.service(AnalyticsService, {
        getScanReport: (_, { requestHeader }) => begin(requestHeader),
        async *exportScans(_, { requestHeader }) {
          for (let page = 0; page < 3; page++) yield await begin(requestHeader);
        },
      });
    },
    { router: { interceptors: [asAccount, limitLists()] } },
  );
  const [codes, analytics] = [createClient(CodesService, transport), createClient(AnalyticsService, transport)];
  const as = (account: string) => ({ headers: { account } });
  return {
    begun,
    list: (account: string) => codes.listCodes({}, as(account)),
    report: (account: string) => analytics.getScanReport({}, as(account)),
    async export(account: string) {
      for await (const _ of analytics.exportScans({}, as(account)));
    },
    audit: () => createClient(ScansService, transport).auditScans({}),
    listEndedSessions: () => createClient(AccountsService, transport).listEndedSessions({}),
    getCode: (account: string) => codes.getCode({}, as(account)),
  };
}

test('however many lists, reports and exports an account asks for, two run at a time, beside those of others', async () => {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const served = serveLists(() => ended);
  const many = Array.from({ length: 50 }, () => [served.list('a'), served.report('a'), served.export('a')]);
  const others = OTHERS.map((account) => served.list(account));
  await served.getCode('a');
  await expect.poll(() => served.begun).toEqual(['a', 'a', ...OTHERS]);
  end();
  await Promise.all([...many.flat(), ...others]);
  expect(served.begun).toHaveLength(50 + 50 + 3 * 50 + OTHERS.length);
});

test('two calls of each method without an account run at a time, and hold up none of another one', async () => {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const served = serveLists(() => ended);
  const audits = Array.from({ length: 3 }, () => served.audit());
  await served.listEndedSessions();
  expect(served.begun).toEqual([null, null]);
  end();
  await Promise.all(audits);
});

test('one iteration of the event loop answers two lists of an account', async () => {
  let [inIteration, most] = [0, 0];
  const served = serveLists(async () => {
    if (++inIteration === 1) {
      setImmediate(() => {
        inIteration = 0;
      });
    }
    most = Math.max(most, inIteration);
  });
  await Promise.all(Array.from({ length: 50 }, () => [served.list('a'), served.export('a')]).flat());
  expect(most).toBe(2);
});
