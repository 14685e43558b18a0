import { type DescMethod, fromJson, type JsonValue, type Message } from '@bufbuild/protobuf';
import { Code, ConnectError, createClient, type Interceptor, type Transport } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { Health } from '../../proto/gen/grpc/health/v1/health_pb.ts';
import { AccountsService, Plan, Role } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { BatchesService } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { DomainsService } from '../../proto/gen/signpost/domains/v1/domains_pb.ts';
import { TaxonomyService } from '../../proto/gen/signpost/taxonomy/v1/taxonomy_pb.ts';
import { WebhooksService } from '../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { internal } from '../../test/contract/internal.ts';
import { startDns } from '../../test/harness/dns.ts';
import { type Signpost, startSignpost } from '../../test/harness/processes.ts';
import { RPC_SERVICES } from '../../test/harness/rpc-services.ts';
import { messageOf } from './arbitrary-message.fixture.ts';

/**
 * Arbitrary messages to every method of every service: never an internal error, never a hang, always a sentence, and no
 * internal details in it.
 */
const METHODS = RPC_SERVICES.flatMap((service) =>
  service.methods.map((method) => [`${service.name}/${method.name}`, method] as const),
);

const NUM_RUNS = 8;
/** Only a hang takes this long. */
const TIMEOUT_MS = 20_000;
/** Responses after which an endless stream is left. */
const MAX_RESPONSES = 20;
const INTERNAL_CODES: readonly Code[] = [
  Code.Internal,
  Code.Unknown,
  Code.DataLoss,
  Code.Unimplemented,
  Code.DeadlineExceeded,
];
const INTERNALS = /node_modules|\.ts\b|\bat \/|select |insert |ECONN|127\.0\.0\.1|postgres|kafka|violates|syntax/i;

let signpost: Signpost;
beforeAll(async () => {
  const dns = await startDns();
  signpost = await startSignpost({ gateways: 0, env: { DNS_RESOLVERS: dns.address, BATCH_WINDOW_MS: '500' } });
});

/** Creates an account with one resource of every kind; returns all ids. */
async function subject(): Promise<string[]> {
  const { accountId } = await signpost.createAccount({ plan: Plan.ENTERPRISE });
  const codes = internal(signpost, CodesService, accountId);
  const hooks = internal(signpost, WebhooksService, accountId);
  const design = { foregroundColor: '', backgroundColor: '' };
  const page = { landingPage: { title: 'Menu' }, design };
  const targetUrl = 'https://example.com/';
  const deleted = (await codes.createCode({ targetUrl })).code?.id ?? '';
  await codes.deleteCode({ id: deleted });
  const filed = (await codes.createCode({ targetUrl, folder: 'Berlin', tags: ['menu'] })).code;
  const others = await Promise.all([
    codes.createStaticCode({ content: { case: 'payload', value: 'x' }, design }),
    codes.createLandingPageCode(page),
  ]);
  const { tags } = await internal(signpost, TaxonomyService, accountId).listTags({});
  const { batch } = await internal(signpost, BatchesService, accountId).createBatch({ rows: [{ targetUrl }] });
  const { domain } = await internal(signpost, DomainsService, accountId).addDomain({
    hostname: `${accountId.slice(5)}.example.com`,
  });
  const { member } = await internal(signpost, AccountsService, accountId).addMember({
    email: 'anna@example.com',
    role: Role.OWNER,
  });
  const { endpoint } = await hooks.createEndpoint({ url: 'https://example.invalid/', events: ['qr.created'] });
  const { delivery } = await hooks.sendTestEvent({ id: endpoint?.id ?? '' });
  const known = [filed?.id, filed?.folder?.id, tags[0]?.id, batch?.id, domain?.id, member?.id, endpoint?.id];
  return [
    accountId,
    ...[...known, delivery?.id, deleted, ...others.map(({ code }) => code?.id), 'Berlin', 'menu'].flatMap(
      (id) => id ?? [],
    ),
  ];
}

/** Methods that would spoil the results of the others get an account of their own. */
const DESTRUCTIVE = /^(Close|Delete|Merge|Remove|Rename|Revoke|Update)/;

let shared: Promise<string[]> | undefined;

function subjectOf({ name }: DescMethod): Promise<string[]> {
  if (DESTRUCTIVE.test(name)) return subject();
  shared ??= subject();
  return shared;
}

const acting =
  (account: string): Interceptor =>
  (next) =>
  (request) => {
    request.header.set('authorization', `Bearer ${signpost.serviceToken}`);
    request.header.set('signpost-account', account);
    return next(request);
  };

const WAYS: readonly [string, (interceptors: Interceptor[]) => Transport][] = [
  [
    'JSON over Connect',
    (interceptors) => {
      const baseUrl = `http://127.0.0.1:${signpost.corePort}`;
      return createConnectTransport({ baseUrl, interceptors, httpVersion: '1.1', useBinaryFormat: false });
    },
  ],
  [
    'native gRPC',
    (interceptors) => createGrpcTransport({ baseUrl: `http://127.0.0.1:${signpost.grpcPort}`, interceptors }),
  ],
];

type Answered = AsyncIterable<Message> | Promise<Message>;

async function call(transport: Transport, method: DescMethod, json: JsonValue): Promise<void> {
  const message = fromJson(method.input, json);
  const client = createClient(method.parent, transport) as Record<
    string,
    (given: unknown, options: object) => Answered
  >;
  const given =
    method.methodKind === 'bidi_streaming'
      ? (async function* () {
          yield message;
        })()
      : message;
  const answered = client[method.localName]?.(given, { timeoutMs: TIMEOUT_MS });
  if (answered && Symbol.asyncIterator in answered) {
    let answers = 0;
    for await (const _ of answered) if (++answers === MAX_RESPONSES || method.parent === Health) break;
  } else await answered;
}

describe.each(WAYS)('%s', (way, over) => {
  // Streams in both directions need HTTP/2.
  const methods = METHODS.filter(([, { methodKind }]) => methodKind !== 'bidi_streaming' || way === 'native gRPC');
  test.each(methods)(
    '%s answers anything with what was asked for or a sentence',
    async (_name, method) => {
      const [account = '', ...known] = await subjectOf(method);
      const transport = over([acting(account)]);
      await fc.assert(
        fc.asyncProperty(messageOf(method.input, [account, ...known]), async (json) => {
          const error = await call(transport, method, json).then(
            () => undefined,
            (thrown: unknown) => thrown,
          );
          if (error === undefined) return;
          if (!(error instanceof ConnectError)) throw error;
          expect(
            INTERNAL_CODES.map((code) => Code[code]),
            error.message,
          ).not.toContain(Code[error.code]);
          expect(error.rawMessage).toMatch(/^\S.*\.$/su);
          expect(error.rawMessage).not.toMatch(INTERNALS);
          expect(readFailure(error).reason).not.toBe('INTERNAL');
        }),
        { numRuns: NUM_RUNS },
      );
    },
    120_000,
  );
});
