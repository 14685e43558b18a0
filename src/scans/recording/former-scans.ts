import type { Pool } from 'pg';
import { type CountryOf, countryCode, openCountries } from '../../../common/contract/countries.ts';
import { referrerHost } from '../../../common/contract/referrer.ts';
import { visitorOf } from '../../../common/contract/visitor.ts';
import { dayOf } from '../days.ts';
import { bigintOf, type ToldScan } from './read-scan.ts';
import { firstSaltedDay, readSalt } from './visitors.ts';

/**
 * Gives scans of former gateways, which wrote the reader's address and referrer, the form that gateways write now; all
 * others stay as they are. Such records are in the log for up to seven days after the last gateway was upgraded, or
 * longer where a spool was not shipped.
 */
export function formerScans(pool: Pool): (scans: readonly ToldScan[], now: number) => Promise<readonly ToldScan[]> {
  /** 8 MB that are read only where they are needed. */
  let countries: Promise<CountryOf> | undefined;

  return async (scans, now) => {
    const days = new Set(scans.filter(({ former }) => former).map(({ scannedAt }) => dayOf(scannedAt)));
    if (days.size === 0) return scans;
    countries ??= openCountries();
    const countryOf = await countries;
    const salts = new Map<string, string | undefined>();
    for (const day of days) if (day >= firstSaltedDay(now)) salts.set(day, await readSalt(pool, day));
    return scans.map((scan) => {
      if (!scan.former) return scan;
      const { address, referrer, countryHint } = scan.former;
      const hinted = countryCode(countryHint);
      const salt = salts.get(dayOf(scan.scannedAt));
      return {
        ...scan,
        visitor:
          salt === undefined ? undefined : bigintOf(Buffer.from(visitorOf(salt, address, scan.userAgent), 'hex')),
        country: hinted === 'unknown' ? countryOf(address) : hinted,
        referrerHost: referrerHost(referrer),
      };
    });
  };
}
