import { failure } from '../../common/contract/errors.ts';
import { type Wifi, WifiSecurity } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';

/**
 * Formats the payload that makes phones join a wireless network. Source: Android's `WifiQrCode`, iOS and ZXing agree on
 * this format; separators are escaped with a backslash. Fails with INVALID_FIELD.
 */
export function wifiPayload({ ssid, password, security, hidden }: Wifi): string {
  for (const [field, text] of Object.entries({ ssid, password })) {
    if (/\p{Cc}/u.test(text)) throw failure('INVALID_FIELD', `wifi.${field}: must not contain control characters.`);
  }
  switch (security) {
    case WifiSecurity.UNSPECIFIED:
      return password === '' ? openNetwork(ssid, hidden) : wpaNetwork(ssid, password, hidden);
    case WifiSecurity.WPA:
      return wpaNetwork(ssid, password, hidden);
    case WifiSecurity.WEP:
      if (!/^(?:[\x20-\x7e]{5}|[\x20-\x7e]{13}|[0-9a-f]{10}|[0-9a-f]{26})$/i.test(password)) {
        throw invalidPassword('a WEP password has 5 or 13 characters, or 10 or 26 hexadecimal digits.');
      }
      return format('WEP', ssid, password, hidden);
    default:
      if (password !== '') throw invalidPassword('an open network has no password.');
      return openNetwork(ssid, hidden);
  }
}

function wpaNetwork(ssid: string, password: string, hidden: boolean): string {
  const characters = [...password].length;
  const key = /^[0-9a-f]{64}$/i.test(password);
  if (!key && (characters < 8 || characters > 63)) {
    throw invalidPassword('a WPA password has 8 to 63 characters, or 64 hexadecimal digits.');
  }
  return format('WPA', ssid, password, hidden);
}

function openNetwork(ssid: string, hidden: boolean): string {
  return format('nopass', ssid, '', hidden);
}

function format(type: string, ssid: string, password: string, hidden: boolean): string {
  return `WIFI:T:${type};S:${escapeSeparators(ssid)};${password && `P:${escapeSeparators(password)};`}${hidden ? 'H:true;' : ''};`;
}

function escapeSeparators(text: string): string {
  return text.replace(/[\\;,":]/g, '\\$&');
}

function invalidPassword(sentence: string) {
  return failure('INVALID_FIELD', `wifi.password: ${sentence}`);
}
