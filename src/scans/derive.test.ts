import fc from 'fast-check';
import { expect, test } from 'vitest';
import { openCountries } from './countries.ts';
import { referrerOf } from './referrer.ts';
import { IPHONE } from './scans.fixture.ts';
import { agentOf, kindOf } from './user-agent.ts';

const countryOf = await openCountries();

test('addresses have their country, IPv4, IPv6 and IPv4 in IPv6', () => {
  expect(countryOf('194.25.0.60')).toBe('DE');
  expect(countryOf('::ffff:194.25.0.60')).toBe('DE');
  expect(countryOf('2a01:4f8::1')).toBe('DE');
});

test.each([
  ...['10.1.2.3', '127.0.0.1', '172.16.0.1', '192.168.1.1', '169.254.1.1', '100.64.0.1', '239.0.0.1'],
  ...['::1', 'fe80::1', 'fd00::1', '::ffff:192.168.1.1', '', 'nonsense'],
])('%s is in no country', (address) => {
  expect(countryOf(address)).toBe('unknown');
});

test('user agents are told apart by device, system, browser and kind', () => {
  expect(agentOf(IPHONE)).toMatchObject({ device: 'mobile', operatingSystem: 'iOS', browser: 'Safari', bot: false });
  expect(kindOf(agentOf(IPHONE), '')).toBe('person');
  expect(kindOf(agentOf(IPHONE), 'prefetch;anonymous-client-ip')).toBe('prefetch');
  const google = agentOf('Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)');
  expect([google.device, kindOf(google, '')]).toEqual(['bot', 'bot']);
  const whatsapp = agentOf('WhatsApp/2.23.20.0');
  expect([whatsapp.device, kindOf(whatsapp, 'prefetch')]).toEqual(['bot', 'preview']);
  expect(agentOf('').device).toBe('other');
});

test('nobody can write a name of their own into a breakdown', () => {
  expect(agentOf('Evil/1.0 stuff').browser).toBe('unknown');
});

test('a referrer is its host without www., direct without one', () => {
  expect(referrerOf('https://www.Example.org:8443/path?q')).toBe('example.org');
  expect(referrerOf('android-app://com.google.android.gm/')).toBe('com.google.android.gm');
  expect(referrerOf('https://bücher.example/')).toBe('xn--bcher-kva.example');
  expect(referrerOf('')).toBe('direct');
  expect(referrerOf('no url')).toBe('unknown');
  expect(referrerOf('http://[::1]/')).toBe('unknown');
});

test('whatever a header says, what is derived holds nothing that a Postgres array or a line of CSV would have to escape', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.webUrl(),
        fc.string({ unit: 'binary' }).map((it) => `x://${it}`),
      ),
      (header) => {
        const { device, operatingSystem, browser } = agentOf(header);
        for (const value of [referrerOf(header), device, operatingSystem, browser, countryOf(header)]) {
          expect(value).not.toMatch(/["\\\0,\n\r]/);
        }
      },
    ),
    { numRuns: 1_000 },
  );
});
