import { failure } from '../../common/contract/errors.ts';
import { type Wifi, WifiSecurity } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';

/**
 * What phones read as access to a wireless network. Source: Android's `WifiQrCode`, iOS and ZXing agree on this form;
 * a backslash keeps the characters that separate. Fails with INVALID_FIELD.
 */
export function wifiPayload({ ssid, password, security, hidden }: Wifi): string {
  if (/\p{Cc}/u.test(ssid + password)) throw wrong('name and password have no control characters.');
  switch (security) {
    case WifiSecurity.UNSPECIFIED:
      return password === '' ? open(ssid, hidden) : wpa(ssid, password, hidden);
    case WifiSecurity.WPA:
      return wpa(ssid, password, hidden);
    case WifiSecurity.WEP:
      if (!/^(?:[\x20-\x7e]{5}|[\x20-\x7e]{13}|[0-9a-f]{10}|[0-9a-f]{26})$/i.test(password)) {
        throw wrong('a WEP password has 5 or 13 characters, or 10 or 26 hexadecimal digits.');
      }
      return written('WEP', ssid, password, hidden);
    default:
      if (password !== '') throw wrong('an open network has no password.');
      return open(ssid, hidden);
  }
}

function wpa(ssid: string, password: string, hidden: boolean): string {
  const characters = [...password].length;
  const key = /^[0-9a-f]{64}$/i.test(password);
  if (!key && (characters < 8 || characters > 63)) {
    throw wrong('a WPA password has 8 to 63 characters, or 64 hexadecimal digits.');
  }
  return written('WPA', ssid, password, hidden);
}

function open(ssid: string, hidden: boolean): string {
  return written('nopass', ssid, '', hidden);
}

function written(type: string, ssid: string, password: string, hidden: boolean): string {
  return `WIFI:T:${type};S:${escaped(ssid)};${password && `P:${escaped(password)};`}${hidden ? 'H:true;' : ''};`;
}

function escaped(text: string): string {
  return text.replace(/[\\;,":]/g, '\\$&');
}

function wrong(sentence: string) {
  return failure('INVALID_FIELD', `wifi: ${sentence}`);
}
