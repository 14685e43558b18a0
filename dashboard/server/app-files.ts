import { existsSync } from 'node:fs';
import { join } from 'node:path';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance } from 'fastify';
import { sendPage } from './pages/page.ts';

/** How long browsers keep files whose names contain a hash of their content, in ms: a year. */
const YEAR_MS = 365 * 24 * 60 * 60 * 1_000;

/**
 * Serves the built pages in `folder`. Every address that is no file is one of the app's own, so it gets `index.html`.
 * Files with a `.br` or `.gz` beside them are sent compressed.
 */
export async function serveApp(app: FastifyInstance, folder: string): Promise<void> {
  if (!existsSync(join(folder, 'index.html'))) {
    app.setNotFoundHandler((request, reply) => sendPage(request, reply, isPage(request) ? 'not-built' : 'not-found'));
    return;
  }
  await app.register(fastifyStatic, {
    root: folder,
    preCompressed: true,
    cacheControl: false,
    setHeaders(reply, path) {
      const isHashed = path.startsWith(join(folder, 'assets/'));
      reply.header('cache-control', isHashed ? `public, max-age=${YEAR_MS / 1_000}, immutable` : 'no-cache');
    },
  });
  app.setNotFoundHandler((request, reply) =>
    isPage(request) ? reply.sendFile('index.html') : sendPage(request, reply, 'not-found'),
  );
}

/** Whether a request may be for a page of the app, rather than for a file or a part of the server. */
function isPage({ method, url }: { readonly method: string; readonly url: string }): boolean {
  return (method === 'GET' || method === 'HEAD') && !/^\/(assets|rpc|session|sign-in)(\/|\?|$)/.test(url);
}
