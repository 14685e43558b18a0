import { takeFreePortsFrom } from '../../local/free-port.ts';

/** More than workers that run tests at the same time. */
const RANGES = 16;

// Workers count from 1; the services that tests share have the first range.
takeFreePortsFrom(Number(process.env.VITEST_POOL_ID ?? 0) % RANGES, RANGES);
