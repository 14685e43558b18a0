import fc from 'fast-check';
import { expect, test } from 'vitest';
import { agentOf, kindOf } from '../../../common/contract/user-agent.ts';
import { IPHONE, newScannedCode, scanRecord } from '../scans.fixture.ts';
import { type DecodedScan, decodeScan } from './decode-scan.ts';
import { derive } from './derive.ts';

test('user agents are classified by device, system, browser and kind', () => {
  expect(agentOf(IPHONE)).toMatchObject({ device: 'mobile', operatingSystem: 'iOS', browser: 'Safari', bot: false });
  expect(kindOf(agentOf(IPHONE), '')).toBe('person');
  expect(kindOf(agentOf(IPHONE), 'prefetch;anonymous-client-ip')).toBe('prefetch');
  const google = agentOf('Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)');
  expect([google.device, kindOf(google, '')]).toEqual(['bot', 'bot']);
  const whatsapp = agentOf('WhatsApp/2.23.20.0');
  expect([whatsapp.device, kindOf(whatsapp, 'prefetch')]).toEqual(['bot', 'preview']);
  expect(
    agentOf('Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0'),
  ).toMatchObject({ device: 'desktop', operatingSystem: 'Chrome OS' });
  expect(agentOf('Mozilla/5.0 (X11; FreeBSD amd64; rv:109.0) Gecko/20100101 Firefox/115.0').device).toBe('desktop');
  expect(agentOf('').device).toBe('other');
});

test('a user agent cannot add a name of its own to a breakdown', () => {
  expect(agentOf('Evil/1.0 stuff').browser).toBe('unknown');
});

test('derived values never need escaping in a Postgres array or a line of CSV, whatever the record contains', () => {
  const scanned = newScannedCode();
  const text = fc.oneof(
    fc.string(),
    fc.webUrl(),
    fc.string({ unit: 'binary' }).map((it) => `x://${it}`),
  );
  fc.assert(
    fc.property(text, text, text, (userAgent, country, referrerHost) => {
      const decoded = decodeScan(scanRecord(scanned, { userAgent, country, referrerHost }), Date.now()) as DecodedScan;
      const scan = derive(decoded, '2020-01-01');
      for (const value of [scan.referrer, scan.device, scan.operating_system, scan.browser, scan.country]) {
        expect(value).not.toMatch(/["\\\0,\n\r]/);
      }
    }),
    { numRuns: 1_000 },
  );
});
