import { create } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readFailure } from '../../../common/contract/errors.ts';
import { WifiSchema, WifiSecurity } from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { wifiPayload } from './wifi.ts';

const payload = (fields: object) => wifiPayload(create(WifiSchema, fields));
const { WPA, WEP, NONE } = WifiSecurity;

test.each([
  [{ ssid: 'Trattoria', password: 'pasta e basta' }, 'WIFI:T:WPA;S:Trattoria;P:pasta e basta;;'],
  [{ ssid: 'Trattoria' }, 'WIFI:T:nopass;S:Trattoria;;'],
  [{ ssid: 'Trattoria', security: NONE, hidden: true }, 'WIFI:T:nopass;S:Trattoria;H:true;;'],
  [
    { ssid: 'a;b,c:d"e\\f', password: '\\;,:"\\;,:"' },
    'WIFI:T:WPA;S:a\\;b\\,c\\:d\\"e\\\\f;P:\\\\\\;\\,\\:\\"\\\\\\;\\,\\:\\";;',
  ],
  [{ ssid: 'x', password: 'abcde', security: WEP }, 'WIFI:T:WEP;S:x;P:abcde;;'],
  [{ ssid: 'x', password: '0123456789', security: WEP }, 'WIFI:T:WEP;S:x;P:0123456789;;'],
  [{ ssid: 'x', password: 'f'.repeat(64), security: WPA }, `WIFI:T:WPA;S:x;P:${'f'.repeat(64)};;`],
])('%j gives %s', (fields, expected) => {
  expect(payload(fields)).toBe(expected);
});

test.each([
  [{ ssid: 'x', password: 'short' }, /8 to 63/],
  [{ ssid: 'x', security: WPA }, /8 to 63/],
  [{ ssid: 'x', password: 'g'.repeat(64) }, /8 to 63/],
  [{ ssid: 'x', password: 'abcdef', security: WEP }, /WEP/],
  [{ ssid: 'x', password: 'pasta e basta', security: NONE }, /no password/],
  [{ ssid: 'x\ny' }, /control characters/],
])('%j is rejected', (fields, sentence) => {
  let error: unknown;
  try {
    payload(fields);
  } catch (thrown) {
    error = thrown;
  }
  expect(readFailure(error)).toMatchObject({ reason: 'INVALID_FIELD', message: expect.stringMatching(sentence) });
});

/** Parses a payload as phones do: a field ends at the first unescaped semicolon. */
function parsePayload(text: string): Record<string, string> {
  const fields: Record<string, string> = {};
  for (const [, name = '', value = ''] of text.slice('WIFI:'.length).matchAll(/([TSPH]):((?:\\.|[^;\\])*);/gu)) {
    fields[name] = value.replace(/\\(.)/gu, '$1');
  }
  return fields;
}

test('any name and password are parsed unchanged', () => {
  const word = (least: number, most: number) =>
    fc.string({ minLength: least, maxLength: most, unit: 'grapheme' }).filter((text) => !/\p{Cc}/u.test(text));
  fc.assert(
    fc.property(word(1, 20), word(8, 12), (ssid, password) => {
      expect(parsePayload(payload({ ssid, password }))).toEqual({ T: 'WPA', S: ssid, P: password });
    }),
  );
});
