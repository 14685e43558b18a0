import { expect, test } from 'vitest';
import { referrerHost } from './referrer.ts';

test('a referrer is its host without www., empty without one', () => {
  expect(referrerHost('https://www.Example.org:8443/path?q')).toBe('example.org');
  expect(referrerHost('android-app://com.google.android.gm/')).toBe('com.google.android.gm');
  expect(referrerHost('https://bücher.example/')).toBe('xn--bcher-kva.example');
  expect(referrerHost('https://www.example.org./path')).toBe('example.org');
  expect(referrerHost('https://example.org../')).toBe('unknown');
  expect(referrerHost('')).toBe('');
  expect(referrerHost('about:blank')).toBe('');
  expect(referrerHost('no url')).toBe('unknown');
  expect(referrerHost('http://[::1]/')).toBe('unknown');
  const longest = `${'a.'.repeat(126)}a`;
  expect(referrerHost(`https://${longest}/`)).toBe(longest);
  expect(referrerHost(`https://a${longest}/`)).toBe('unknown');
});
