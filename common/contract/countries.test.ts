import { expect, test } from 'vitest';
import { countryCode, openCountries } from './countries.ts';
import { COUNTRIES } from './country-codes.ts';

const countryOf = await openCountries();

test('countries of IPv4, IPv6 and IPv4-mapped addresses are found', () => {
  expect(countryOf('194.25.0.60')).toBe('DE');
  expect(countryOf('::ffff:194.25.0.60')).toBe('DE');
  expect(countryOf('2a01:4f8::1')).toBe('DE');
});

test.each([
  ...['10.1.2.3', '127.0.0.1', '172.16.0.1', '192.168.1.1', '169.254.1.1', '100.64.0.1', '239.0.0.1'],
  ...['::', '::1', '0:0:0:0:0:0:0:1', 'fe80::1', 'FEBF::1', 'fe80::1%eth0', 'fc12::1', 'fd00::1', 'ff02::1'],
  ...['::ffff:192.168.1.1', '', 'nonsense'],
])('%s is in no country', (address) => {
  expect(countryOf(address)).toBe('unknown');
});

test('only assigned codes are countries, and UK is GB', () => {
  expect(COUNTRIES.size).toBe(249);
  const names = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' });
  expect([...COUNTRIES].filter((code) => names.of(code) === undefined)).toEqual([]);
  expect(['de', 'GB', 'uk', 'UK'].map(countryCode)).toEqual(['DE', 'GB', 'GB', 'GB']);
  for (const code of ['XX', 'ZZ', 'EU', 'AP', 'A1', 'T1', 'XK', 'SU', 'D', 'DEU', '', undefined]) {
    expect(countryCode(code)).toBe('unknown');
  }
});
