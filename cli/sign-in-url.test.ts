import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { dashboardUrl, signInUrl } from './sign-in-url.ts';

test('the link leads to DASHBOARD_URL, or to the port of the dashboard, which may be in a file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'signpost-dashboard-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const DASHBOARD_PORT_FILE = join(folder, 'port');
  writeFileSync(DASHBOARD_PORT_FILE, '8099\n');
  const of = (env: NodeJS.ProcessEnv) => signInUrl(dashboardUrl(env), 'secret');
  expect(of({})).toBe('http://localhost:8090/sign-in/link#secret');
  expect(of({ DASHBOARD_PORT_FILE })).toBe('http://localhost:8099/sign-in/link#secret');
  const DASHBOARD_URL = 'https://signpost.example/codes/';
  expect(of({ DASHBOARD_URL, DASHBOARD_PORT_FILE })).toBe('https://signpost.example/codes/sign-in/link#secret');
  expect(() => of({ DASHBOARD_URL: 'signpost.example' })).toThrow('DASHBOARD_URL must be an http or https address');
});
