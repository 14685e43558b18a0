import { type Wifi, WifiSecurity } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { isLonger } from './is-longer.ts';

/** Why access to a network cannot be encoded. */
export type WifiProblem =
  | 'ssid_control_characters'
  | 'password_control_characters'
  | 'wpa_password'
  | 'wep_password'
  | 'open_password';

/** The payload, or why there is none. */
export type WifiPayload = { readonly payload: string } | { readonly problem: WifiProblem };

/**
 * Formats the payload that makes phones join a wireless network. Source: Android's `WifiQrCode`, iOS and ZXing agree on
 * this format; separators are escaped with a backslash.
 */
export function formatWifi({ ssid, password, security, hidden }: Omit<Wifi, '$typeName' | '$unknown'>): WifiPayload {
  if (/\p{Cc}/u.test(ssid)) return { problem: 'ssid_control_characters' };
  if (/\p{Cc}/u.test(password)) return { problem: 'password_control_characters' };
  switch (security) {
    case WifiSecurity.UNSPECIFIED:
      return password === '' ? openNetwork(ssid, hidden) : wpaNetwork(ssid, password, hidden);
    case WifiSecurity.WPA:
      return wpaNetwork(ssid, password, hidden);
    case WifiSecurity.WEP:
      if (!/^(?:[\x20-\x7e]{5}|[\x20-\x7e]{13}|[0-9a-f]{10}|[0-9a-f]{26})$/i.test(password)) {
        return { problem: 'wep_password' };
      }
      return format('WEP', ssid, password, hidden);
    default:
      return password === '' ? openNetwork(ssid, hidden) : { problem: 'open_password' };
  }
}

function wpaNetwork(ssid: string, password: string, hidden: boolean): WifiPayload {
  const key = /^[0-9a-f]{64}$/i.test(password);
  if (!key && (!isLonger(password, 7) || isLonger(password, 63))) return { problem: 'wpa_password' };
  return format('WPA', ssid, password, hidden);
}

function openNetwork(ssid: string, hidden: boolean): WifiPayload {
  return format('nopass', ssid, '', hidden);
}

function format(type: string, ssid: string, password: string, hidden: boolean): WifiPayload {
  const payload = `WIFI:T:${type};S:${escapeSeparators(ssid)};${password && `P:${escapeSeparators(password)};`}${hidden ? 'H:true;' : ''};`;
  return { payload };
}

function escapeSeparators(text: string): string {
  return text.replace(/[\\;,":]/g, '\\$&');
}
