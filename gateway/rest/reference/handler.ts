import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isCurrent } from '../entity-tags.ts';
import type { OpenApiDocument } from '../openapi/openapi-types.ts';
import { referencePage, SCRIPT, STYLE } from './page.ts';

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

/**
 * Compressed once, by the thread pool. Brotli takes 24 ms of CPU for 330 kB at this level, and 293 ms at the highest.
 */
const COMPRESSIONS = {
  br: (page: Buffer) => promisify(brotliCompress)(page, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  gzip: (page: Buffer) => promisify(gzip)(page, { level: 9 }),
};
type Encoding = keyof typeof COMPRESSIONS;

/**
 * A handler of `GET /docs`. The page is rendered at once and not when it is first requested: that takes up to 140 ms of
 * CPU in a process that has just started, for which scans would wait.
 */
export function referenceHandler(document: OpenApiDocument, baseUrl: string) {
  const page = Buffer.from(referencePage(document, baseUrl));
  const tag = `"${createHash('sha256').update(page).digest('base64url')}"`;
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': POLICY,
    'cache-control': 'public, max-age=300',
    'referrer-policy': 'no-referrer',
    vary: 'accept-encoding',
    etag: `W/${tag}`,
  };
  const compressed = new Map<Encoding, Promise<Buffer>>();

  return async (request: FastifyRequest, reply: FastifyReply) => {
    reply.headers(headers);
    if (isCurrent(tag, request.headers['if-none-match'])) return reply.code(304).send();
    const encoding = accepted(request.headers['accept-encoding']);
    if (!encoding) return reply.send(page);
    const body = compressed.get(encoding) ?? COMPRESSIONS[encoding](page);
    compressed.set(encoding, body);
    return reply.header('content-encoding', encoding).send(await body);
  };
}

/** The best encoding that the client accepts. Source: RFC 9110 §12.5.3. */
function accepted(header: string | string[] = ''): Encoding | undefined {
  const offered = String(header)
    .toLowerCase()
    .split(',')
    .map((each) => each.trim().split(/\s*;\s*q=/));
  const names = offered.filter(([, weight = '1']) => Number(weight) > 0).map(([name]) => name);
  return (['br', 'gzip'] as const).find((encoding) => names.includes(encoding));
}
