import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { fileURLToPath } from 'node:url';
import { type CountryResponse, Reader } from 'mmdb-lib';
import { COUNTRIES } from './country-codes.ts';

/** Returns the country of an address as ISO 3166 alpha-2, or `unknown`. Never throws. */
export type CountryOf = (address: string) => string;

const BUNDLED = fileURLToPath(
  import.meta.resolve('@ip-location-db/geo-whois-asn-country-mmdb/geo-whois-asn-country.mmdb'),
);

/**
 * The number of cached decoded records. A country database has a few hundred; a city database has a hundred thousand,
 * which must not all stay in memory.
 */
const MAX_CACHED = 2_000;

/**
 * Addresses that belong to no country, some of which are in the bundled database: private, loopback, link-local, shared
 * and multicast ones. Patterns, because creating an address object for a `BlockList` takes longer than the look-up.
 */
const NO_COUNTRY =
  /^(?:0|10|127|22[4-9]|2[3-5]\d|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])|169\.254|172\.(?:1[6-9]|2\d|3[01])|192\.168)\./;
const NO_COUNTRY_IPV6 = /^(?:[0:]+1?$|f[cd][0-9a-f]{2}:|fe[89ab][0-9a-f]:|ff[0-9a-f]{2}:)/i;

const MAPPED = /^::ffff:.*\./i;

/**
 * Reads a country database in MaxMind's format into memory (the bundled one: 8 MB); a look-up then takes about 1 µs.
 * Records contain the country as `country.iso_code` (MaxMind, DB-IP) or `country_code` (the bundled one). Rejects if
 * the file cannot be read or is not such a database.
 */
export async function openCountries(file = BUNDLED): Promise<CountryOf> {
  const decoded = new Map<string | number, unknown>();
  const cache = {
    get: (key: string | number) => decoded.get(key),
    set(key: string | number, value: unknown) {
      if (decoded.size >= MAX_CACHED) decoded.clear();
      decoded.set(key, value);
    },
  };
  const reader = new Reader<CountryResponse & { country_code?: string }>(await readFile(file), { cache });
  return (address) => {
    // A dual-stack socket reports IPv4 peers as ::ffff:192.0.2.1.
    const plain = MAPPED.test(address) ? address.slice('::ffff:'.length) : address;
    const version = isIP(plain);
    try {
      if (version === 0 || (version === 4 ? NO_COUNTRY : NO_COUNTRY_IPV6).test(plain)) return 'unknown';
      const found = reader.get(plain);
      return countryCode(found?.country?.iso_code ?? found?.country_code);
    } catch {
      // A damaged database costs the label, never the scan.
      return 'unknown';
    }
  };
}

/** An assigned country code in upper case; `GB` for `UK`, which is reserved for it; `unknown` for anything else. */
export function countryCode(given: unknown): string {
  if (typeof given !== 'string' || given.length !== 2) return 'unknown';
  const code = given.toUpperCase();
  if (code === 'UK') return 'GB';
  return COUNTRIES.has(code) ? code : 'unknown';
}
