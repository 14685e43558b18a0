import { readFile } from 'node:fs/promises';
import { BlockList, isIP } from 'node:net';
import { fileURLToPath } from 'node:url';
import { type CountryResponse, Reader } from 'mmdb-lib';

/** ISO 3166 alpha-2 of an address, or `unknown`. Never throws. */
export type CountryOf = (address: string) => string;

const DATABASE = '@ip-location-db/geo-whois-asn-country-mmdb/geo-whois-asn-country.mmdb';

const COUNTRY = /^[A-Z]{2}$/;

/** Addresses that are in no country; the database is not free of them. */
const NOWHERE = new BlockList();
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['224.0.0.0', 3],
] as const) {
  NOWHERE.addSubnet(network, prefix, 'ipv4');
}
for (const [network, prefix] of [
  ['::', 127],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8],
] as const) {
  NOWHERE.addSubnet(network, prefix, 'ipv6');
}

/** Reads the country database into memory, 8 MB; a look-up then takes about 1 µs. */
export async function openCountries(): Promise<CountryOf> {
  const file = await readFile(fileURLToPath(import.meta.resolve(DATABASE)));
  const reader = new Reader<CountryResponse & { country_code?: string }>(file);
  return (address) => {
    // A dual-stack socket tells IPv4 peers as ::ffff:192.0.2.1.
    const plain = address.toLowerCase().startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
    const version = isIP(plain);
    if (version === 0 || NOWHERE.check(plain, version === 4 ? 'ipv4' : 'ipv6')) return 'unknown';
    try {
      return countryCode(reader.get(plain)?.country_code ?? '');
    } catch {
      // A damaged database costs the label, never the scan.
      return 'unknown';
    }
  };
}

/** A country code in capitals; `unknown` for anything else, also for `XX` and `ZZ`, which name none. */
export function countryCode(told: string): string {
  const code = told.toUpperCase();
  return COUNTRY.test(code) && code !== 'XX' && code !== 'ZZ' ? code : 'unknown';
}
