import type { Pool } from 'pg';
import { type CountryOf, countryCode, openCountries } from '../../../common/contract/countries.ts';
import { referrerHost } from '../../../common/contract/referrer.ts';
import { visitorOf } from '../../../common/contract/visitor.ts';
import { dayOf } from '../days.ts';
import { bigintOf, type DecodedScan } from './decode-scan.ts';
import { firstSaltedDay, readSalt } from './visitors.ts';

/**
 * Converts scans from older gateways, which sent the visitor's address and referrer, to the form that gateways send
 * now; other scans are returned unchanged. Such records stay in the log for up to seven days after the last gateway was
 * upgraded, or longer where a spool has not been shipped.
 */
export function legacyScanConverter(
  pool: Pool,
): (scans: readonly DecodedScan[], now: number) => Promise<readonly DecodedScan[]> {
  /** 8 MB, loaded on first use. */
  let countries: Promise<CountryOf> | undefined;

  return async (scans, now) => {
    const days = new Set(scans.filter(({ legacy }) => legacy).map(({ scannedAt }) => dayOf(scannedAt)));
    if (days.size === 0) return scans;
    countries ??= openCountries();
    const countryOf = await countries;
    const salts = new Map<string, string | undefined>();
    for (const day of days) if (day >= firstSaltedDay(now)) salts.set(day, await readSalt(pool, day));
    return scans.map((scan) => {
      if (!scan.legacy) return scan;
      const { address, referrer, countryHint } = scan.legacy;
      const hint = countryCode(countryHint);
      const salt = salts.get(dayOf(scan.scannedAt));
      return {
        ...scan,
        visitor:
          salt === undefined ? undefined : bigintOf(Buffer.from(visitorOf(salt, address, scan.userAgent), 'hex')),
        country: hint === 'unknown' ? countryOf(address) : hint,
        referrerHost: referrerHost(referrer),
      };
    });
  };
}
