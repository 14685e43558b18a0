import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type PageKind, textsFor } from './texts.ts';

const STATUS: Readonly<Record<PageKind, number>> = {
  link: 200,
  'link-invalid': 400,
  'not-a-member': 403,
  unverified: 403,
  'sign-in-failed': 400,
  'provider-unavailable': 503,
  'no-provider': 404,
  unavailable: 503,
  'foreign-origin': 403,
  'not-found': 404,
  'not-built': 503,
};

/** Serves what the pages load: the content security policy allows nothing inside of them. */
export function servePageFiles(app: FastifyInstance): void {
  for (const [file, type] of [
    ['sign-in.css', 'text/css; charset=utf-8'],
    ['sign-in-link.js', 'text/javascript; charset=utf-8'],
  ] as const) {
    const content = readFileSync(join(import.meta.dirname, file));
    app.get(`/sign-in/${file}`, (_, reply) =>
      reply.header('cache-control', 'public, max-age=300').type(type).send(content),
    );
  }
}

/**
 * Sends a page in the reader's language. `signIn`: where its link to sign in again leads. `token`: if given, the page
 * has a form that redeems this sign-in token. Its script replaces it with the one in the address's fragment.
 */
export function sendPage(
  request: FastifyRequest,
  reply: FastifyReply,
  kind: PageKind,
  { signIn = '/sign-in', token }: { signIn?: string; token?: string } = {},
): FastifyReply {
  const { language, title, text, action } = textsFor(kind, request.headers['accept-language']);
  const again = action === undefined ? '' : `<p><a href="${escaped(signIn)}">${action}</a></p>`;
  // Without the query the answer would have the address of links, and a new link opened in its tab would differ only in
  // the fragment and load nothing.
  const form = `<form method="post" action="/sign-in/link?redeem"><input type="hidden" name="token" value="${escaped(token ?? '')}"><button>${action}</button></form>
<script src="/sign-in/sign-in-link.js"></script>`;
  const page = `<!doctype html>
<html lang="${language}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
<link rel="stylesheet" href="/sign-in/sign-in.css">
<main>
<h1>${title}</h1>
<p>${text}</p>
${token === undefined ? again : form}
</main>
</html>
`;
  return reply
    .code(STATUS[kind])
    .headers({ 'cache-control': 'no-store', 'content-language': language, vary: 'accept-language' })
    .type('text/html; charset=utf-8')
    .send(page);
}

/** Text as the value of an attribute. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
}
