import { beforeAll, describe, expect, test, vi } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { AccountsService, type ApiRequest, Plan, Role } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { type Account, contract, TARGET } from './client.ts';
import { internal } from './internal.ts';

const EVENTUALLY = { timeout: 30_000, interval: 100 };
/** A batch is never finished within the request. */
const api = contract({ env: { BATCH_WINDOW_MS: '0' } });

const accountsOf = (account: Account) => internal(api.signpost, AccountsService, account.id);

/** The account's requests, newest first, once there are `count`. */
async function recorded(account: Account, count: number): Promise<readonly ApiRequest[]> {
  return vi.waitFor(async () => {
    const { requests } = await accountsOf(account).listApiRequests({ limit: 1_000 });
    expect(requests).toHaveLength(count);
    return requests;
  }, EVENTUALLY);
}

const lineOf = ({ method, path, status, reason }: ApiRequest) => `${method} ${path} ${status} ${reason}`.trim();

test('every authenticated request is listed with the id and status of its response', async () => {
  const account = await api.account();
  const code = await account.create();
  const path = `/qr-codes/${code.id}`;
  const batch = { json: { rows: [{ target_url: TARGET }] } };
  const image = await account.call('GET', `${path}/image`);
  const etag = { headers: { 'if-none-match': image.headers.get('etag') ?? '' } };
  const answers = [
    image,
    await account.call('GET', `${path}/image`, etag),
    await account.call('GET', `/qr-codes?search=secret`),
    await account.call('HEAD', path),
    await account.call('GET', '/qr-codes/qr_none?x=secret'),
    await account.call('PATCH', path, { raw: '{' }),
    await account.call('PATCH', path, { json: { target_url: 'x' } }),
    await account.call('POST', '/batches', batch),
    await account.call('DELETE', path),
    await account.call('GET', '/openapi'),
    await account.call('GET', '/openapi', { headers: { 'if-none-match': '*' } }),
  ];
  const requests = await recorded(account, answers.length + 1);
  expect(requests.toReversed().map(lineOf)).toEqual([
    'POST /api/v1/qr-codes 201',
    'GET /api/v1/qr-codes/{id}/image 200',
    'GET /api/v1/qr-codes/{id}/image 304',
    'GET /api/v1/qr-codes 200',
    'HEAD /api/v1/qr-codes/{id} 200',
    'GET /api/v1/qr-codes/{id} 404 NOT_FOUND',
    'PATCH /api/v1/qr-codes/{id} 400 MALFORMED_BODY',
    'PATCH /api/v1/qr-codes/{id} 400 INVALID_FIELD',
    'POST /api/v1/batches 202',
    'DELETE /api/v1/qr-codes/{id} 200',
    'GET /api/v1/openapi 200',
    'GET /api/v1/openapi 304',
  ]);
  const [, ...listed] = requests.toReversed();
  expect(listed.map(({ requestId, status }) => [requestId, status])).toEqual(
    answers.map(({ headers, status }) => [headers.get('x-request-id'), status]),
  );
  for (const { durationMs } of requests) expect(durationMs).toBeGreaterThanOrEqual(0);
  // Nothing that callers write is kept, apart from the request id.
  expect(JSON.stringify(requests, (_, value) => (typeof value === 'bigint' ? `${value}` : value))).not.toMatch(
    /secret|qr_|example\.com/,
  );
});

test('requests that the plan or a limit rejects are listed, those without a valid key are not', async () => {
  const [free, spent] = [
    await api.account({ plan: Plan.FREE }),
    await api.account({ overrides: { monthlyQuota: 1n } }),
  ];
  await free.call('GET', '/qr-codes');
  await free.call('POST', '/qr-codes', { json: { target_url: TARGET } });
  for (const _ of [1, 2]) await spent.call('GET', '/tags');
  await spent.call('GET', '/tags', { headers: { authorization: `Bearer ${spent.apiKey.slice(0, -1)}!` } });
  expect((await recorded(free, 2)).map(lineOf)).toEqual([
    'POST /api/v1/qr-codes 403 BUSINESS_PLAN_REQUIRED',
    'GET /api/v1/qr-codes 403 BUSINESS_PLAN_REQUIRED',
  ]);
  expect((await recorded(spent, 2)).map(lineOf)).toEqual([
    'GET /api/v1/tags 429 QUOTA_EXHAUSTED',
    'GET /api/v1/tags 200',
  ]);
});

test('a call to the core with a key is listed by its method, whatever else it claims', async () => {
  const account = await api.account();
  const call = (headers: Record<string, string>) =>
    fetch(`http://127.0.0.1:${api.signpost.corePort}/${CodesService.typeName}/ListCodes`, {
      method: 'POST',
      headers: { authorization: `Bearer ${account.apiKey}`, 'content-type': 'application/json', ...headers },
      body: '{}',
    });
  await call({ 'signpost-request': `GET /api/v1/${'x'.repeat(200)} 200`, 'x-request-id': 'x'.repeat(129) });
  await call({ 'signpost-request': 'GET /elsewhere 200', 'x-request-id': 'mine' });
  const requests = await recorded(account, 2);
  expect(requests.map(lineOf)).toEqual(Array(2).fill(`POST /${CodesService.typeName}/ListCodes 200`));
  expect(requests.map(({ requestId }) => requestId)).toEqual(['mine', '']);
});

describe('the list', () => {
  let account: Account;
  let requests: readonly ApiRequest[];
  beforeAll(async () => {
    account = await api.account();
    for (const n of [1, 2, 3, 4]) {
      await account.call('GET', n % 2 === 0 ? '/tags' : '/qr-codes/qr_none', {
        headers: { 'x-request-id': `call-${n}` },
      });
    }
    requests = await recorded(account, 4);
  });
  const idsOf = async (request: Parameters<ReturnType<typeof accountsOf>['listApiRequests']>[0]) =>
    (await accountsOf(account).listApiRequests(request)).requests.map(({ requestId }) => requestId);

  test('is newest first and paged by cursor', async () => {
    expect(requests.map(({ requestId }) => requestId)).toEqual(['call-4', 'call-3', 'call-2', 'call-1']);
    const { nextCursor: cursor = '', ...first } = await accountsOf(account).listApiRequests({ limit: 3 });
    expect(first.requests).toEqual(requests.slice(0, 3));
    const second = await accountsOf(account).listApiRequests({ cursor });
    expect(second.requests).toEqual(requests.slice(3));
    expect(second.nextCursor).toBeUndefined();
    const other = accountsOf(await api.account());
    await expect(other.listApiRequests({ cursor })).rejects.toThrow('cursor: was not issued');
  });

  test('is filtered by the first digit of the status, and by request id', async () => {
    expect(await idsOf({ statusClass: 2 })).toEqual(['call-4', 'call-2']);
    expect(await idsOf({ statusClass: 4 })).toEqual(['call-3', 'call-1']);
    expect(await idsOf({ statusClass: 5 })).toEqual([]);
    expect(await idsOf({ requestId: 'call-3' })).toEqual(['call-3']);
    expect(await idsOf({ requestId: 'call-3', statusClass: 2 })).toEqual([]);
    await expect(idsOf({ statusClass: 1 })).rejects.toThrow('status_class');
  });

  test('is for members of the account only, viewers too', async () => {
    const { member } = await accountsOf(account).addMember({ email: 'anna@example.com', role: Role.VIEWER });
    const id = member?.id ?? '';
    const viewer = internal(api.signpost, AccountsService, account.id, id);
    expect((await viewer.listApiRequests({})).requests).toEqual(requests);
    const stranger = internal(api.signpost, AccountsService, (await api.account()).id, id);
    const error = await stranger.listApiRequests({}).catch((thrown: unknown) => thrown);
    expect(readFailure(error).reason).toBe('NOT_A_MEMBER');
  });
});
