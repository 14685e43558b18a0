import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ERROR_EXAMPLES } from '../../gateway/rest/openapi/openapi-errors.ts';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { type Account, contract, type Failure, type One, TARGET } from '../contract/client.ts';
import { internal } from '../contract/internal.ts';
import { rawSockets } from '../hostile/raw-sockets.ts';

const api = contract();
const { exchange } = rawSockets(() => Number(new URL(api.signpost.url).port));

const UNKNOWN = '01kagcpn9te5gvjxq1rmm30w4h';
const rows = (count: number) => Array.from({ length: count }, () => ({ target_url: TARGET }));
const post = (account: Account, path: string, json: unknown, key?: string) =>
  account.call('POST', path, { json, ...(key === undefined ? {} : { headers: { 'idempotency-key': key } }) });
const onPlan = (overrides: object) => api.account({ overrides });

/** Causes each error of the catalogue, by status and name. */
const CAUSES: Readonly<Record<string, () => Promise<{ readonly status: number; readonly body: Failure }>>> = {
  '400 malformed_json': async () => (await api.account()).call('POST', '/qr-codes', { raw: '{target_url' }),
  '400 invalid_field': async () => post(await api.account(), '/qr-codes', {}),
  '400 unknown_domain': async () =>
    post(await api.account(), '/qr-codes', { target_url: TARGET, domain_id: `domain_${UNKNOWN}` }),
  '400 idempotency_key': async () => post(await api.account(), '/qr-codes', { target_url: TARGET }, 'x'.repeat(256)),
  '400 unknown_folder': async () => (await api.account()).call('GET', '/qr-codes?folder=nowhere'),
  '400 invalid_cursor': async () => (await api.account()).call('GET', '/qr-codes?cursor=nonsense'),
  '400 no_fields': async () => {
    const account = await api.account();
    const { id } = await account.create();
    return account.call('PATCH', `/qr-codes/${id}`, { json: {} });
  },
  '400 unknown_format': async () => {
    const account = await api.account();
    const { id } = await account.create();
    return account.call('GET', `/qr-codes/${id}/image?format=gif`);
  },
  '400 unknown_status': async () => (await api.account()).call('GET', `/batches/batch_${UNKNOWN}?status=lost`),
  '400 no_rows': async () => post(await api.account(), '/batches', { rows: [] }),
  '401 invalid_key': () => api.call('GET', '/api/v1/tags', { headers: { authorization: 'Bearer sk_live_wrong' } }),
  '403 business_plan_required': async () => (await api.account({ plan: Plan.FREE })).call('GET', '/qr-codes'),
  '403 no_batches': async () => (await onPlan({ bulk: false })).call('GET', '/batches'),
  '403 no_images': async () => (await onPlan({ images: false })).call('GET', `/qr-codes/qr_${UNKNOWN}/image`),
  '403 qr_limit_reached': async () => {
    const account = await onPlan({ codeLimit: 1n });
    await account.create();
    return post(account, '/qr-codes', { target_url: TARGET });
  },
  '403 batch_limit_exceeded': async () => post(await onPlan({ batchLimit: 2 }), '/batches', { rows: rows(3) }),
  '404 no_such_code': async () => (await api.account()).call('GET', `/qr-codes/qr_${UNKNOWN}`),
  '404 no_such_batch': async () => (await api.account()).call('GET', `/batches/batch_${UNKNOWN}`),
  '409 key_reused': async () => {
    const [account, key] = [await api.account(), randomUUID()];
    await post(account, '/qr-codes', { target_url: TARGET }, key);
    return post(account, '/qr-codes', { target_url: `${TARGET}2` }, key);
  },
  '409 no_target': async () => {
    const account = await api.account();
    const { code } = await internal(api.signpost, CodesService, account.id).createStaticCode({
      content: { case: 'payload', value: 'text' },
    });
    return account.call('PATCH', `/qr-codes/${code?.id}`, { json: { target_url: TARGET } });
  },
  '413 too_large': async () => (await api.account()).call('POST', '/qr-codes', { raw: ' '.repeat(1_048_577) }),
  '413 batch_too_large': async () => (await api.account()).call('POST', '/batches', { raw: ' '.repeat(3_500_001) }),
  '413 too_many_rows': async () =>
    post(await api.account({ plan: Plan.ENTERPRISE }), '/batches', { rows: Array(25_001).fill({}) }),
  '429 burst': async () => {
    const account = await api.account();
    await Promise.all(Array.from({ length: 120 }, () => account.call('GET', '/tags')));
    return account.call('GET', '/tags');
  },
  '429 pipelined': async () => {
    const received = await exchange('GET /api/v1/tags HTTP/1.1\r\nhost: a.example\r\n\r\n'.repeat(102));
    const [, status, body = ''] = /HTTP\/1\.1 (429) .*?\r\n\r\n(\{.*?\})/s.exec(received.toString()) ?? [];
    return { status: Number(status), body: JSON.parse(body) };
  },
  '429 quota': async () => (await onPlan({ monthlyQuota: 0n })).call<One & Failure>('GET', '/tags'),
};

const catalogue = Object.entries(ERROR_EXAMPLES).flatMap(([status, cases]) =>
  Object.entries(cases).map(([name, { value }]) => ({ status: Number(status), name: `${status} ${name}`, value })),
);

/** A body without its figures, which differ from account to account. */
const figureless = (body: object) => JSON.stringify(body).replace(/\d[\d-]*/g, '#');

test.each(catalogue.filter(({ name }) => name in CAUSES))(
  'the reference shows what the API answers: $name',
  async ({ status, name, value }) => {
    const answer = await CAUSES[name]?.();
    expect(answer?.status).toBe(status);
    expect(figureless(answer?.body ?? {})).toBe(figureless(value));
  },
);

test('the sentences of the other errors are those of the code', () => {
  const files = execFileSync('git', ['ls-files', 'src', 'gateway', 'common'], { encoding: 'utf8' }).trim().split('\n');
  const code = files
    .filter((file) => file.endsWith('.ts') && !file.endsWith('openapi-errors.ts') && !file.includes('.test.'))
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n')
    .replace(/\$\{.*?\}/g, '#');
  const others = catalogue.filter(({ name }) => !(name in CAUSES)).map(({ value }) => value.error.replace(/\d+/g, '#'));
  expect(others).toHaveLength(9);
  expect(others.filter((sentence) => !code.includes(sentence))).toEqual([]);
});
