import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { LOOPBACK } from '../../local/free-port.ts';
import { connectCore } from './core.ts';
import { createServer } from './server.ts';

/** Serves the files, without a core, and returns the address. */
async function serve(files: Readonly<Record<string, string | Buffer>>): Promise<string> {
  const appFolder = await mkdtemp(join(tmpdir(), 'signpost-app-'));
  onTestFinished(() => rm(appFolder, { recursive: true }));
  await mkdir(join(appFolder, 'assets'));
  for (const [name, content] of Object.entries(files)) await writeFile(join(appFolder, name), content);
  const core = connectCore({
    host: LOOPBACK,
    port: 1,
    ca: undefined,
    serviceToken: 'x',
    logger: pino({ enabled: false }),
  });
  onTestFinished(() => core.close());
  const app = await createServer({
    dashboardUrl: 'https://dashboard.example',
    publicUrl: 'https://signpost.example',
    secretKey: Buffer.alloc(32),
    core,
    provider: undefined,
    timeoutMs: 1_000,
    appFolder,
    logger: pino({ enabled: false }),
  });
  await app.listen({ host: LOOPBACK, port: 0 });
  onTestFinished(() => app.close());
  return `http://${LOOPBACK}:${(app.server.address() as AddressInfo).port}`;
}

const SCRIPT = `console.log('${'a'.repeat(2_000)}')`;

test('every address of the app gets its page, which is checked for changes each time', async () => {
  const url = await serve({ 'index.html': '<!doctype html><title>App</title>' });
  for (const path of ['/', '/codes', '/codes/qr_x?tab=scans', '/index.html']) {
    const response = await fetch(`${url}${path}`);
    expect([path, response.status, await response.text()]).toEqual([path, 200, expect.stringContaining('App')]);
    expect(response.headers.get('cache-control')).toBe('no-cache');
    expect(response.headers.get('content-security-policy')).toContain("script-src 'self'");
    expect(response.headers.get('strict-transport-security')).toBe('max-age=31536000');
  }
});

test('files in assets/ are kept for ever, and sent compressed where they are', async () => {
  const url = await serve({
    'index.html': 'App',
    'assets/app-1a2b.js': SCRIPT,
    'assets/app-1a2b.js.gz': gzipSync(SCRIPT),
  });
  const response = await fetch(`${url}/assets/app-1a2b.js`, { headers: { 'accept-encoding': 'gzip' } });
  expect([response.status, await response.text()]).toEqual([200, SCRIPT]);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'cache-control': 'public, max-age=31536000, immutable',
    'content-encoding': 'gzip',
    'content-type': expect.stringMatching(/javascript/),
    vary: expect.stringMatching(/accept-encoding/i),
  });
});

test('a missing file, and an address of the server’s own, are no page of the app', async () => {
  const url = await serve({ 'index.html': 'App' });
  for (const path of ['/assets/missing.js', '/rpc/x', '/session/x', '/sign-in/x', '/assets/..%2f..%2fpackage.json']) {
    const response = await fetch(`${url}${path}`);
    expect([path, response.status]).toEqual([path, 404]);
    expect(response.headers.get('cache-control')).toBe('no-store');
  }
});

test('without a build, the server says what is missing', async () => {
  const url = await serve({});
  const response = await fetch(url);
  expect([response.status, await response.text()]).toEqual([503, expect.stringContaining('npm run build:dashboard')]);
});
