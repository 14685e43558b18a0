import { expect, test } from 'vitest';
import { readHostname } from './hostname.ts';

const read = (input: string) => readHostname(input, 'sign.example');

test.each([
  ['menu.example.com', 'menu.example.com'],
  ['  Menu.EXAMPLE.com.\n', 'menu.example.com'],
  ['münchen.example', 'xn--mnchen-3ya.example'],
  ['MÜNCHEN.example', 'xn--mnchen-3ya.example'],
  ['xn--mnchen-3ya.example', 'xn--mnchen-3ya.example'],
  ['faß.example', 'xn--fa-hia.example'],
  ['例え。テスト', 'xn--r8jz45g.xn--zckzah'],
  ['1.2.3.4.example', '1.2.3.4.example'],
  ['go.sign.example', 'go.sign.example'],
  [`${'a'.repeat(63)}.example`, `${'a'.repeat(63)}.example`],
])('%j is the hostname %s', (input, hostname) => {
  expect(read(input)).toEqual({ hostname });
});

test.each([
  ['', /such as/],
  ['.', /such as/],
  ['localhost', /two labels/],
  ['https://menu.example.com', /only a hostname/],
  ['menu.example.com/r/x', /only a hostname/],
  ['menu.example.com:443', /only a hostname/],
  ['user@menu.example.com', /only a hostname/],
  ['menu.example.com#x', /only a hostname/],
  ['192.0.2.1', /IP address/],
  ['192.0.2.1.', /IP address/],
  ['127.1', /IP address/],
  ['0x7f.0.0.1', /IP address/],
  ['menu.0x10', /such as/],
  ['１２７.１', /IP address/],
  ['1.2.3.4.5', /such as/],
  ['2001:db8::1', /IP address/],
  ['[2001:db8::1]', /IP address/],
  ['*.example.com', /wildcard/],
  ['a..example', /such as/],
  ['.menu.example', /such as/],
  ['menu.example..', /such as/],
  ['-menu.example', /such as/],
  ['menu-.example', /such as/],
  ['me_nu.example', /such as/],
  ['me nu.example', /such as/],
  ['me\tnu.example', /such as/],
  ['menu.example\0', /such as/],
  ['m%65nu.example', /such as/],
  ['xn--iñvalid.example', /such as/],
  ['\u202emenu.example', /such as/],
  [`${'a'.repeat(64)}.example`, /such as/],
  [`${'a.'.repeat(120)}example`, /at most 243/],
  ['Sign.Example.', /platform itself/],
  ['ｓｉｇｎ.example', /platform itself/],
])('%j is refused', (input, why) => {
  expect(read(input)).toEqual({ problem: expect.stringMatching(why) });
});
