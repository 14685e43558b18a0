import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

/**
 * The browser of the tests; undefined on machines without one, where they are skipped. The headless shell is Chromium
 * without its windows: opening six pages took it 1.5 s of CPU, and all of Chromium 9.
 */
export const CHROMIUM = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium', '/usr/bin/google-chrome'].find(
  existsSync,
);
if (!CHROMIUM && process.env.CI === 'true')
  throw new Error('Tests of pages need Chromium: apt-get install chromium-headless-shell.');

/**
 * Shorter than a test may take, so that a failure says what was awaited, in ms. After an outage, a page loads again by
 * itself within 23 s.
 */
const WAIT_MS = 45_000;

/** Starts the browser. The caller closes it. */
export async function launchBrowser(): Promise<Browser> {
  // In a container there is no sandbox to be had, and the pages are ours.
  const browser = await chromium.launch({ ...(CHROMIUM && { executablePath: CHROMIUM }), args: ['--no-sandbox'] });
  browser.on('context', (context) => context.setDefaultTimeout(WAIT_MS));
  return browser;
}
