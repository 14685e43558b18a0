import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

/**
 * The browser of the tests; undefined on machines without one, where they are skipped. The headless shell is Chromium without
 * its windows: opening six pages took it 1.5 s of CPU, and all of Chromium 9.
 */
export const CHROMIUM = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium', '/usr/bin/google-chrome'].find(
  existsSync,
);
if (!CHROMIUM && process.env.CI === 'true')
  throw new Error('Tests of pages need Chromium: apt-get install chromium-headless-shell.');

/** Starts the browser. The caller closes it. */
export function launchBrowser(): Promise<Browser> {
  // In a container there is no sandbox to be had, and the pages are ours.
  return chromium.launch({ ...(CHROMIUM && { executablePath: CHROMIUM }), args: ['--no-sandbox'] });
}
