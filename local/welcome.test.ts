import { expect, test } from 'vitest';
import { readSettings } from './settings.ts';
import { signInText, welcome } from './welcome.ts';

test('every printed address is one that the program listens on', async () => {
  const settings = readSettings({ LISTEN_HOST: '192.0.2.1' });
  const printed = welcome(settings, 'sk_live_x');
  expect(new Set(printed.match(/http:\/\/[^/\s]+/g))).toEqual(
    new Set(['http://192.0.2.1:8080', 'http://localhost:8081']),
  );
  expect(await signInText(settings, { corePort: 1, serviceToken: 'x' }, 'acct_1', {})).toBe(
    'The dashboard listens on 192.0.2.1:8090, where it requires https: put a proxy before it, and set DASHBOARD_URL to its address.\n',
  );
});

test('the printed command calls this core, without the certificates of another one', async () => {
  const given = { CORE_HOST: 'core.example', CORE_CA: 'ca.pem', CORE_KEY: '' };
  const text = await signInText(readSettings({}), { corePort: 8081, serviceToken: 'x' }, undefined, given);
  expect(text).toContain('\n  CORE_HOST=127.0.0.1 CORE_CA= npm run signpost -- dashboard link ');
});
