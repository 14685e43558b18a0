import { takeFreePortsFrom } from '../../local/free-port.ts';

/** More than workers that run tests at the same time. */
const RANGES = 16;

takeFreePortsFrom(Number(process.env.VITEST_POOL_ID) % RANGES, RANGES);
