import { createHash } from 'node:crypto';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { request } from 'undici';
import { describe, expect, test } from 'vitest';
import type { Schema } from '../../gateway/rest/openapi/openapi-types.ts';
import { contract } from '../contract/client.ts';
import { operationsOf } from '../contract/openapi-validation.ts';

const api = contract();
const page = async () => (await api.call<string>('GET', '/docs')).body;

/** Gets the page without decompressing it. */
async function get(headers: Readonly<Record<string, string>>) {
  const { statusCode, headers: answered, body } = await request(`${api.signpost.url}/docs`, { headers });
  return { status: statusCode, headers: answered, body: Buffer.from(await body.arrayBuffer()) };
}

const hashes = (html: string, tag: string) =>
  [...html.matchAll(new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`, 'g'))].map(
    ([, text = '']) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`,
  );

describe('GET /docs', () => {
  test('is public and self-contained: its CSP allows its own style sheet, script and icon, and nothing else', async () => {
    const { status, headers, body } = await api.call<string>('GET', '/docs');
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    const [style, ...styles] = hashes(body, 'style');
    const [script, ...scripts] = hashes(body, 'script');
    expect([...styles, ...scripts]).toEqual([]);
    expect(headers.get('content-security-policy')).toBe(
      `default-src 'none'; style-src ${style}; script-src ${script}; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    );
    expect(body).not.toMatch(/<img|\ssrc=|url\(|@import|\sstyle=|\son\w+=|<link(?! rel="icon" href="data:)/);
  });

  test('is compressed, small, and revalidated by its ETag', async () => {
    const plain = await get({});
    expect(plain.headers['content-encoding']).toBeUndefined();
    const decoded = { br: brotliDecompressSync, gzip: gunzipSync };
    for (const [accepted, used] of [
      ['gzip, deflate, br', 'br'],
      ['GZIP;q=0.5, br;q=0', 'gzip'],
    ] as const) {
      const { headers, body } = await get({ 'accept-encoding': accepted });
      expect(headers).toMatchObject({ 'content-encoding': used, vary: 'accept-encoding' });
      expect(body.length).toBeLessThan(60_000);
      expect(decoded[used](body).equals(plain.body)).toBe(true);
    }
    const etag = String(plain.headers.etag);
    // A proxy may have removed the mark of a weak tag.
    for (const known of [etag, etag.replace('W/', ''), `"other", ${etag}`, '*']) {
      const unchanged = await get({ 'if-none-match': known, 'accept-encoding': 'br' });
      expect([unchanged.status, unchanged.body.length, unchanged.headers.etag]).toEqual([304, 0, etag]);
    }
    expect((await get({ 'if-none-match': '"other"' })).status).toBe(200);
  });

  test('has every operation, parameter, field, value and status of the OpenAPI document', async () => {
    const html = await page();
    const missing: string[] = [];
    const expectItem = (id: string, contents: readonly unknown[]) => {
      const start = html.indexOf(`<li id="${id}">`);
      const item = html.slice(start, html.indexOf('</li>', start));
      if (start < 0) missing.push(id);
      for (const value of contents) if (!item.includes(`>${value}</code>`)) missing.push(`${id}: ${value}`);
    };
    const expectFields = (schema: Schema | undefined, prefix: string) => {
      for (const each of alternatives(schema)) {
        for (const [name, field] of Object.entries(each.properties ?? {})) {
          const { enum: values = [], const: always = values[0] } = field;
          expectItem(`${prefix}.${name}`, [name, ...values, ...(always === undefined ? [] : [always])]);
          expectFields(field, `${prefix}.${name}`);
        }
      }
    };
    /** The objects that a schema may be, also in arrays. */
    const alternatives = (schema: Schema | undefined): Schema[] => {
      if (schema === undefined) return [];
      const { $ref, items, anyOf } = schema;
      if ($ref !== undefined) return alternatives(api.document.components.schemas[$ref.split('/').at(-1) ?? '']);
      if (anyOf) return anyOf.flatMap(alternatives);
      return items ? alternatives(items) : [schema];
    };
    for (const { operation, path } of operationsOf(api.document)) {
      const { operationId: id, parameters = [], requestBody, responses } = operation;
      expect(html).toContain(`<h3 id="${id}">`);
      expect(html.replaceAll('<wbr>', '')).toContain(`>${path}</code>`);
      for (const { name, in: where, schema } of parameters) {
        const { enum: values = [], default: fallback } = schema;
        expectItem(`${id}.${where}.${name}`, [name, ...values, ...(fallback === undefined ? [] : [fallback])]);
      }
      expectFields(requestBody?.content['application/json']?.schema, `${id}.body`);
      for (const [status, { content }] of Object.entries(responses)) {
        const json = content?.['application/json'];
        if (Number(status) < 400) expectFields(json?.schema, `${id}.${status}`);
        for (const { value } of Object.values(json?.examples ?? {})) {
          if (!html.includes(escaped(JSON.stringify(value)))) missing.push(`${id} ${status} ${JSON.stringify(value)}`);
        }
      }
    }
    for (const [type, { post }] of Object.entries(api.document.webhooks)) {
      expectFields(post.requestBody.content['application/json']?.schema, type);
    }
    expect(missing).toEqual([]);
  });

  test('has an example for every parameter and for every field of a request', async () => {
    const html = await page();
    const items = [...html.matchAll(/<li id="(\w+\.(?:path|query|header|body)\.[^"]+)">([\s\S]*?)<\/li>/g)];
    expect(items.length).toBeGreaterThan(40);
    const without = items.filter(([, , item = '']) => !/Example<\/span>|<details>/.test(item)).map(([, id]) => id);
    expect(without).toEqual([]);
  });

  test('has unique ids, and links only to them', async () => {
    const html = await page();
    const ids = [...html.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id);
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
    const links = [...html.matchAll(/href="#([^"]*)"/g)].map(([, id]) => id);
    expect(links.filter((id) => !ids.includes(id))).toEqual([]);
    expect(links.length).toBeGreaterThan(60);
  });
});

function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}
