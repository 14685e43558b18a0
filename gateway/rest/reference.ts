import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { OpenApiDocument } from './openapi-types.ts';
import { referencePage, SCRIPT, STYLE } from './reference/page.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('base64');

/** The page's CSP allows only its own style sheet, script and icon. */
const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${sha256(STYLE)}'`,
  `script-src 'sha256-${sha256(SCRIPT)}'`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Compressed once, by the thread pool: 300 kB take brotli 20 ms at this level, and 900 ms at the highest. */
const COMPRESSIONS = {
  br: (page: Buffer) => promisify(brotliCompress)(page, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  gzip: (page: Buffer) => promisify(gzip)(page, { level: 9 }),
};
type Encoding = keyof typeof COMPRESSIONS;

/** A handler of `GET /docs`: the page is rendered and compressed when it is first requested, and then kept. */
export function reference(document: OpenApiDocument, baseUrl: string) {
  let rendered: { readonly page: Buffer; readonly etag: string } | undefined;
  const compressed = new Map<Encoding, Promise<Buffer>>();

  function render() {
    const page = Buffer.from(referencePage(document, baseUrl));
    return { page, etag: `W/"${createHash('sha256').update(page).digest('base64url')}"` };
  }

  return async ({ headers }: FastifyRequest, reply: FastifyReply) => {
    rendered ??= render();
    const { page, etag } = rendered;
    reply.headers({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': POLICY,
      'cache-control': 'public, max-age=300',
      'referrer-policy': 'no-referrer',
      vary: 'accept-encoding',
      etag,
    });
    if (headers['if-none-match'] === etag) return reply.code(304).send();
    const encoding = accepted(headers['accept-encoding']);
    if (!encoding) return reply.send(page);
    const body = compressed.get(encoding) ?? COMPRESSIONS[encoding](page);
    compressed.set(encoding, body);
    return reply.header('content-encoding', encoding).send(await body);
  };
}

/** The best encoding that the client accepts. Source: RFC 9110 §12.5.3. */
function accepted(header = ''): Encoding | undefined {
  const offered = header
    .toString()
    .toLowerCase()
    .split(',')
    .map((each) => each.trim().split(/\s*;\s*q=/));
  const names = offered.filter(([, weight = '1']) => Number(weight) > 0).map(([name]) => name);
  return (['br', 'gzip'] as const).find((encoding) => names.includes(encoding));
}
