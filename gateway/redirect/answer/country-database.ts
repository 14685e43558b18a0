import { stat } from 'node:fs/promises';
import type { Logger } from 'pino';
import { type CountryOf, openCountries } from '../../../common/contract/countries.ts';

/** How often the file is checked for changes, in ms. */
const CHECK_MS = 5_000;

/** Looks up the country of an address in the newest usable content of a file. */
export interface CountryDatabase {
  readonly countryOf: CountryOf;
  close(): void;
}

/**
 * Reads a country database, by default the bundled one, and reloads it when the file was changed or replaced. A file
 * that cannot be read is logged once, and the last usable database stays in use: initially the bundled one.
 */
export async function openCountryDatabase(
  file: string | undefined,
  logger: Logger,
  checkMs = CHECK_MS,
): Promise<CountryDatabase> {
  if (file === undefined) return { countryOf: await openCountries(), close: () => undefined };
  let current: CountryOf | undefined;
  let loadedVersion = '';
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;

  async function check(path: string): Promise<void> {
    const version = await versionOf(path);
    if (version !== loadedVersion) {
      loadedVersion = version;
      try {
        current = await openCountries(path);
        logger.info('COUNTRY_DATABASE was read');
      } catch (error) {
        logger.error({ err: error }, 'COUNTRY_DATABASE can’t be read; the last usable database stays in use');
      }
    }
    if (!isClosed) timer = setTimeout(check, checkMs, path);
  }

  await check(file);
  current ??= await openCountries();
  return {
    countryOf: (address) => current?.(address) ?? 'unknown',
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

/** A string that changes whenever the file is modified or replaced. */
async function versionOf(file: string): Promise<string> {
  try {
    const { ino, size, mtimeNs } = await stat(file, { bigint: true });
    return `${ino} ${size} ${mtimeNs}`;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unreadable';
  }
}
