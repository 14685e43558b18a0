import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { Code, ConnectError, createClient, type Interceptor, type Transport } from '@connectrpc/connect';
import { beforeAll, describe, expect, test } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { MAX_TIMEOUT_MS } from '../../common/contract/limits.ts';
import { Health, HealthCheckResponse_ServingStatus as Status } from '../../proto/gen/grpc/health/v1/health_pb.ts';
import { AccountsService, Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { AnalyticsService } from '../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import { BatchesService } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { DomainsService } from '../../proto/gen/signpost/domains/v1/domains_pb.ts';
import { ImagesService } from '../../proto/gen/signpost/images/v1/images_pb.ts';
import { MAX_MESSAGE_BYTES } from './message-limits.ts';
import { type Serving, TARGET } from './serve.fixture.ts';

/** Sends an API key or a token, and other headers. */
export const bearer =
  (token: string, headers: Record<string, string> = {}): Interceptor =>
  (next) =>
  (request) => {
    request.header.set('authorization', `Bearer ${token}`);
    for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
    return next(request);
  };

export async function reasonOf(call: Promise<unknown>): Promise<string> {
  return readFailure(await errorOf(call)).reason;
}

async function errorOf(call: Promise<unknown>): Promise<ConnectError> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ConnectError)) throw new Error('the call did not fail with a ConnectError');
  return error;
}

/** Tests that every transport of a core must pass. */
export function conformance(
  name: string,
  serving: () => Serving,
  over: (interceptors: Interceptor[]) => Transport,
): void {
  describe(name, () => {
    let apiKey: string;
    const { token, oldToken } = { token: () => serving().tokens[0], oldToken: () => serving().tokens[1] };
    beforeAll(async () => {
      const accounts = createClient(AccountsService, over([bearer(token())]));
      ({ apiKey } = await accounts.createAccount({ name: 'A', plan: Plan.BUSINESS }));
    });
    const codes = (headers?: Record<string, string>) => createClient(CodesService, over([bearer(apiKey, headers)]));
    /** Its only method answers when the test allows it. */
    const slow = () => createClient(ImagesService, over([bearer(apiKey)]));

    test('creates and reads a code, and returns the rate as response metadata', async () => {
      const created = await codes().createCode({ targetUrl: TARGET });
      let rate: Headers | undefined;
      const read = await codes().getCode({ id: created.code?.id ?? '' }, { onHeader: (headers) => (rate = headers) });
      expect(read.code).toEqual(created.code);
      expect(rate?.get('ratelimit-limit')).toBe('50000');
      expect(rate?.get('ratelimit-remaining')).toBe('49998');
    });

    test('an error has its code, reason, sentence, details and the rate', async () => {
      const missing = await errorOf(codes().getCode({ id: 'qr_none' }));
      expect(missing.code).toBe(Code.NotFound);
      expect(readFailure(missing)).toMatchObject({
        reason: 'NOT_FOUND',
        message: 'There is no such code on this account.',
      });
      expect(missing.metadata.get('ratelimit-limit')).toBe('50000');
      const limited = await createClient(AccountsService, over([bearer(token())])).createAccount({
        name: 'Grüße',
        plan: Plan.BUSINESS,
        overrides: { codeLimit: 0n },
      });
      const full = await errorOf(
        createClient(CodesService, over([bearer(limited.apiKey)])).createCode({ targetUrl: TARGET }),
      );
      expect(full.code).toBe(Code.ResourceExhausted);
      expect(readFailure(full)).toMatchObject({ reason: 'QR_LIMIT_REACHED', details: { limit: '0', used: '0' } });
    });

    test('a constraint of the proto file is enforced, and names its field', async () => {
      const error = await errorOf(codes().createCode({ targetUrl: TARGET, name: 'x'.repeat(201) }));
      expect(error.code).toBe(Code.InvalidArgument);
      expect(readFailure(error)).toMatchObject({ reason: 'INVALID_FIELD', message: expect.stringMatching(/^name: /) });
    });

    test('an error that quotes something long reaches the caller, and other calls are not affected', async () => {
      const client = codes();
      const other = client.listCodes({});
      const paths = [`name.${'é'.repeat(100_000)}`];
      expect(await reasonOf(client.updateCode({ id: 'x', updateMask: { paths } }))).toBe('INVALID_FIELD');
      expect((await other).total).toBeGreaterThan(0n);
    });

    test('a missing key, a wrong key and an invalid token are rejected', async () => {
      expect(await reasonOf(createClient(CodesService, over([])).listCodes({}))).toBe('UNAUTHENTICATED');
      for (const wrong of ['sk_live_x', `sk_live_${'a'.repeat(43)}`]) {
        expect(await reasonOf(createClient(CodesService, over([bearer(wrong)])).listCodes({}))).toBe('UNAUTHENTICATED');
      }
    });

    test('a missing service token and a wrong one are reported as such', async () => {
      const rejected = { code: Code.Unauthenticated, rawMessage: expect.stringContaining('service token') };
      const rejection = async (call: Promise<unknown>) => {
        const error = await errorOf(call);
        expect(error).toMatchObject(rejected);
        return readFailure(error).reason;
      };
      expect(await rejection(createClient(AccountsService, over([])).listAccounts({}))).toBe('INVALID_SERVICE_TOKEN');
      for (const wrong of ['x', `${token()}x`, token().slice(1)]) {
        const transport = over([bearer(wrong)]);
        expect(await rejection(createClient(AccountsService, transport).listAccounts({}))).toBe(
          'INVALID_SERVICE_TOKEN',
        );
        const acting = over([bearer(wrong, { 'signpost-account': 'acct_x' })]);
        for (const way of [transport, acting]) {
          expect(await rejection(createClient(CodesService, way).listCodes({}))).toBe('INVALID_SERVICE_TOKEN');
        }
      }
    });

    test('an API key cannot call internal methods', async () => {
      const accounts = createClient(AccountsService, over([bearer(apiKey)]));
      expect((await errorOf(accounts.listAccounts({}))).code).toBe(Code.PermissionDenied);
      expect(await reasonOf(accounts.listAccounts({}))).toBe('INTERNAL_METHOD');
    });

    test('errors of an idempotency key say that they are no replays', async () => {
      const codes = createClient(CodesService, over([bearer(apiKey)]));
      const replay = async (key: string, targetUrl: string) => {
        const error = await errorOf(codes.createCode({ targetUrl }, { headers: { 'idempotency-key': key } }));
        return [readFailure(error).reason, error.metadata.get('idempotent-replay')];
      };
      await codes.createCode({ targetUrl: TARGET }, { headers: { 'idempotency-key': 'used' } });
      expect(await replay('used', `${TARGET}/other`)).toEqual(['IDEMPOTENCY_KEY_REUSED', 'false']);
      expect(await replay('k'.repeat(256), TARGET)).toEqual(['INVALID_IDEMPOTENCY_KEY', 'false']);
      expect(await replay('invalid', 'x')).toEqual(['INVALID_FIELD', 'false']);
      expect(await replay('invalid', 'x')).toEqual(['INVALID_FIELD', 'true']);
    });

    test('an internal service names the account that it acts for; both tokens of a rotation are accepted', async () => {
      const { account, apiKey: key } = await createClient(AccountsService, over([bearer(oldToken())])).createAccount({
        name: 'B',
        plan: Plan.FREE,
      });
      const acting = createClient(CodesService, over([bearer(token(), { 'signpost-account': account?.id ?? '' })]));
      expect((await acting.createCode({ targetUrl: TARGET })).code?.targetUrl).toBe(TARGET);
      expect(await reasonOf(createClient(CodesService, over([bearer(token())])).listCodes({}))).toBe('NOT_FOUND');
      expect(await reasonOf(createClient(CodesService, over([bearer(key)])).listCodes({}))).toBe(
        'BUSINESS_PLAN_REQUIRED',
      );
    });

    test('a method that is missing, or unknown, answers unimplemented', async () => {
      const transport = over([bearer(apiKey)]);
      for (const call of [
        () => createClient(BatchesService, transport).listBatches({}),
        () => createClient(DomainsService, transport).listDomains({}),
        () => Array.fromAsync(createClient(AnalyticsService, transport).exportScans({})),
      ]) {
        const error = await errorOf(call());
        expect([error.code, readFailure(error).reason]).toEqual([Code.Unimplemented, 'UNIMPLEMENTED']);
      }
    });

    test('a deadline ends the call for the caller and for the handler', async () => {
      let started = false;
      const aborted = Promise.withResolvers<void>();
      serving().slow.once('started', () => {
        started = true;
      });
      serving().slow.once('aborted', () => aborted.resolve());
      // On a busy machine a short deadline may pass before the call reaches the handler.
      for (let timeoutMs = 100; !started; timeoutMs *= 2) {
        expect((await errorOf(slow().renderImage({ id: 'x' }, { timeoutMs }))).code).toBe(Code.DeadlineExceeded);
      }
      await aborted.promise;
    });

    test('a caller that waits past its deadline is told that it has passed', async () => {
      const headers = { 'connect-timeout-ms': '200', 'grpc-timeout': '200m' };
      const late = createClient(ImagesService, over([bearer(apiKey, headers)])).renderImage({ id: 'x' });
      const error = await errorOf(late);
      expect([error.code, readFailure(error).reason]).toEqual([Code.DeadlineExceeded, 'DEADLINE_EXCEEDED']);
    });

    test('a caller that disconnects ends the call for the handler', async () => {
      const left = new AbortController();
      const [started, aborted] = [once(serving().slow, 'started'), once(serving().slow, 'aborted')];
      const call = errorOf(slow().renderImage({ id: 'x' }, { signal: left.signal }));
      await started;
      left.abort();
      expect((await call).code).toBe(Code.Canceled);
      await aborted;
    });

    test('a message that is too large is rejected unread, and the next call is answered', async () => {
      const error = await errorOf(codes().createCode({ targetUrl: TARGET, tags: ['x'.repeat(MAX_MESSAGE_BYTES)] }));
      expect(error.code).toBe(Code.ResourceExhausted);
      expect(readFailure(error)).toMatchObject({
        reason: 'MESSAGE_TOO_LARGE',
        message: 'The message must have at most 2 MiB.',
      });
      expect((await codes().listCodes({})).total).toBeGreaterThanOrEqual(0n);
    });

    test('health is open to anyone and knows its services', async () => {
      const health = createClient(Health, over([]));
      expect((await health.check({})).status).toBe(Status.SERVING);
      for (const service of [CodesService, AccountsService, ImagesService]) {
        expect((await health.check({ service: service.typeName })).status).toBe(Status.SERVING);
      }
      expect((await errorOf(health.check({ service: 'none' }))).code).toBe(Code.NotFound);
      expect(Object.keys((await health.list({})).statuses)).toContain(CodesService.typeName);
      for await (const { status } of health.watch({ service: CodesService.typeName })) {
        expect(status).toBe(Status.SERVING);
        break;
      }
    });

    test('the same idempotency key gives one code, and the second answer is marked', async () => {
      const client = codes({ 'idempotency-key': randomBytes(8).toString('hex') });
      const replays: (string | null)[] = [];
      const onHeader = (headers: Headers) => replays.push(headers.get('idempotent-replay'));
      const first = await client.createCode({ targetUrl: TARGET }, { onHeader });
      const second = await client.createCode({ targetUrl: TARGET }, { onHeader });
      expect(second).toEqual(first);
      expect(replays).toEqual(['false', 'true']);
      expect(await reasonOf(client.createCode({ targetUrl: `${TARGET}/2` }))).toBe('IDEMPOTENCY_KEY_REUSED');
    });

    describe('a call that arrives after its `signpost-commit-by` changes nothing,', () => {
      const past = { 'signpost-commit-by': '1' };

      test('costs nothing and returns the clock that it is checked against', async () => {
        const { account, apiKey: key } = await createClient(AccountsService, over([bearer(token())])).createAccount({
          name: 'C',
          plan: Plan.BUSINESS,
        });
        const late = createClient(CodesService, over([bearer(key, past)]));
        const error = await errorOf(late.createCode({ targetUrl: TARGET }));
        expect([error.code, readFailure(error).reason]).toEqual([Code.Unavailable, 'TOO_LATE']);
        expect(error.metadata.get('ratelimit-remaining')).toBe('50000');
        const clock = Number(error.metadata.get('signpost-clock'));
        // Postgres is on this machine.
        expect(Math.abs(clock - Date.now())).toBeLessThan(10_000);
        const soon = { 'signpost-commit-by': String(clock + 60_000) };
        const { code } = await createClient(CodesService, over([bearer(key, soon)])).createCode({ targetUrl: TARGET });
        const acting = over([bearer(token(), { 'signpost-account': account?.id ?? '' })]);
        const { codes: listed } = await createClient(CodesService, acting).listCodes({});
        expect(listed.map(({ id }) => id)).toEqual([code?.id]);
      });

      test('also from an internal service, with and without the ORM', async () => {
        const { account } = await createClient(AccountsService, over([bearer(token())])).createAccount({
          name: 'D',
          plan: Plan.BUSINESS,
        });
        const acting = (headers: Record<string, string>) =>
          over([bearer(token(), { ...headers, 'signpost-account': account?.id ?? '' })]);
        const [codes, accounts] = [
          createClient(CodesService, acting(past)),
          createClient(AccountsService, acting(past)),
        ];
        expect(await reasonOf(codes.createCode({ targetUrl: TARGET }))).toBe('TOO_LATE');
        expect(await reasonOf(accounts.updateAccount({ name: 'E' }))).toBe('TOO_LATE');
        const soon = acting({ 'signpost-commit-by': String(Date.now() + 60_000) });
        expect((await createClient(AccountsService, soon).getAccount({})).account?.name).toBe('D');
        expect((await createClient(AccountsService, soon).updateAccount({ name: 'E' })).account?.name).toBe('E');
        expect((await createClient(CodesService, soon).listCodes({})).codes).toEqual([]);
        const far = acting({ 'signpost-commit-by': '999999999999999' });
        expect((await createClient(CodesService, far).createCode({ targetUrl: TARGET })).code).toBeDefined();
      });

      test.each(['', 'soon', '-1', '1.5', '9'.repeat(16), '1; drop table codes'])(
        'an invalid one is rejected: %j',
        async (wrong) => {
          const headers = { 'signpost-commit-by': wrong };
          expect(await reasonOf(codes(headers).createCode({ targetUrl: TARGET }))).toBe('INVALID_FIELD');
          const anyone = createClient(CodesService, over([bearer(`sk_live_${'a'.repeat(43)}`, headers)]));
          expect(await reasonOf(anyone.createCode({ targetUrl: TARGET }))).toBe('UNAUTHENTICATED');
        },
      );
    });

    // From 2^31 ms on, Node's timers fire at once.
    test.each([MAX_TIMEOUT_MS + 1_000, MAX_TIMEOUT_MS * 10, 2 ** 31 + 1_000, 9_999_999_000])(
      'a deadline that is too long is rejected: %d ms',
      async (timeoutMs) => {
        const timeouts = {
          'connect-timeout-ms': String(timeoutMs),
          'grpc-timeout': `${Math.ceil(timeoutMs / 1_000)}S`,
        };
        const error = await errorOf(codes(timeouts).listCodes({}));
        expect(readFailure(error)).toMatchObject({
          reason: 'INVALID_FIELD',
          message: expect.stringMatching(/^(grpc-timeout|connect-timeout-ms): must be at most 10 minutes\.$/),
        });
        const anyone = createClient(CodesService, over([bearer('sk_live_x', timeouts)]));
        expect(await reasonOf(anyone.listCodes({}))).toBe('UNAUTHENTICATED');
      },
    );

    test('the longest deadline is accepted, and a malformed one rejected', async () => {
      const longest = { 'connect-timeout-ms': String(MAX_TIMEOUT_MS), 'grpc-timeout': `${MAX_TIMEOUT_MS / 1_000}S` };
      expect((await codes(longest).listCodes({})).codes.length).toBeGreaterThan(0);
      for (const malformed of ['soon', '', '-1', '1.5S', '99999999999']) {
        const call = codes({ 'connect-timeout-ms': malformed, 'grpc-timeout': malformed }).listCodes({});
        expect(await reasonOf(call)).toBe('INVALID_FIELD');
      }
    });
  });
}
