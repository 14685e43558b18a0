import { randomUUID } from 'node:crypto';
import jsqr from 'jsqr';
import { PNG } from 'pngjs';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import { type Signpost, startSignpost } from './harness/processes.ts';

const kafkaBrokers = inject('kafkaBrokers');
const overKafka = kafkaBrokers ? [{ kafkaBrokers, env: { KAFKA_PREFIX: `t${randomUUID()}.` } }] : [];
const logs = [{ log: 'Postgres', options: {} }, ...overKafka.map((options) => ({ log: 'Kafka', options }))];

const TARGET = 'https://example.com/menu?table=4&lang=de#today';

/** Recording is asynchronous by design: how long to look for it, in ms. */
const EVENTUALLY = { interval: 100 };

interface Code {
  readonly id: string;
  readonly short_code: string;
  readonly scan_url: string;
  readonly scan_count: number;
}

interface Analytics {
  readonly total_scans: number;
  readonly period_scans: number;
  readonly unique_scans: number;
  readonly breakdowns: { readonly days: { readonly date: string; readonly scans: number }[] };
}

describe.each(logs)('with the log in $log', ({ options }) => {
  let signpost: Signpost;
  let apiKey: string;

  beforeAll(async () => {
    signpost = await startSignpost(options);
    ({ apiKey } = await signpost.createAccount());
  });

  function call(path: string, init: RequestInit = {}): Promise<Response> {
    return fetch(`${signpost.url}/api/v1${path}`, { ...init, headers: { authorization: `Bearer ${apiKey}` } });
  }

  async function read<Data>(path: string): Promise<Data> {
    const response = await call(path);
    expect(response.status).toBe(200);
    return ((await response.json()) as { data: Data }).data;
  }

  function scan({ short_code }: Code): Promise<Response> {
    return fetch(`${signpost.url}/r/${short_code}`, { redirect: 'manual' });
  }

  async function create(): Promise<Code> {
    const response = await call('/qr-codes', { method: 'POST', body: JSON.stringify({ target_url: TARGET }) });
    expect(response.status).toBe(201);
    return ((await response.json()) as { data: Code }).data;
  }

  test('a code resolves at once after it was created, and every scan is counted', async () => {
    const code = await create();
    expect(code.scan_url).toBe(`${signpost.url}/r/${code.short_code}`);
    for (let scans = 1; scans <= 3; scans++) {
      const answer = await scan(code);
      expect(answer.status).toBe(302);
      expect(answer.headers.get('location')).toBe(TARGET);
      expect(answer.headers.get('cache-control')).toBe('no-store');
    }

    await expect.poll(async () => (await read<Code>(`/qr-codes/${code.id}`)).scan_count, EVENTUALLY).toBe(3);
    const analytics = await read<Analytics>(`/qr-codes/${code.id}/analytics`);
    expect(analytics).toMatchObject({ total_scans: 3, period_scans: 3, unique_scans: 1 });
    expect(analytics.breakdowns.days).toHaveLength(30);
    expect(analytics.breakdowns.days.reduce((sum, day) => sum + day.scans, 0)).toBe(3);
  });

  test('a new target, a pause and a deletion reach the printed code at once', async () => {
    const code = await create();
    const path = `/qr-codes/${code.id}`;
    await call(path, { method: 'PATCH', body: JSON.stringify({ target_url: 'https://example.org/' }) });
    expect((await scan(code)).headers.get('location')).toBe('https://example.org/');
    await call(path, { method: 'PATCH', body: JSON.stringify({ paused: true }) });
    expect((await scan(code)).status).toBe(200);
    await call(path, { method: 'PATCH', body: JSON.stringify({ paused: false }) });
    expect((await scan(code)).status).toBe(302);
    await call(path, { method: 'DELETE' });
    expect((await scan(code)).status).toBe(410);
  });

  test('the image decodes to exactly the scan URL', async () => {
    const code = await create();
    const image = await call(`/qr-codes/${code.id}/image?size=400`);
    expect(image.headers.get('content-type')).toBe('image/png');
    const { width, height, data } = PNG.sync.read(Buffer.from(await image.arrayBuffer()));
    expect([width, height]).toEqual([400, 400]);
    expect(jsqr.default(new Uint8ClampedArray(data), width, height)?.data).toBe(code.scan_url);
  });
});
