import { formatWifi, type WifiProblem } from '../../../common/codes/wifi.ts';
import { failure } from '../../../common/contract/errors.ts';
import type { Wifi } from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';

const SENTENCES: Readonly<Record<WifiProblem, string>> = {
  ssid_control_characters: 'wifi.ssid: must not contain control characters.',
  password_control_characters: 'wifi.password: must not contain control characters.',
  wpa_password: 'wifi.password: a WPA password has 8 to 63 characters, or 64 hexadecimal digits.',
  wep_password: 'wifi.password: a WEP password has 5 or 13 characters, or 10 or 26 hexadecimal digits.',
  open_password: 'wifi.password: an open network has no password.',
};

/** The payload that makes phones join a wireless network. Fails with INVALID_FIELD. */
export function wifiPayload(wifi: Wifi): string {
  const formatted = formatWifi(wifi);
  if ('problem' in formatted) throw failure('INVALID_FIELD', SENTENCES[formatted.problem]);
  return formatted.payload;
}
