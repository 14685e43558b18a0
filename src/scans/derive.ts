import { type CountryOf, countryCode } from './countries.ts';
import { dayOf } from './days.ts';
import type { ToldScan } from './read-scan.ts';
import { referrerOf } from './referrer.ts';
import { type Agent, agentOf, type Kind, kindOf } from './user-agent.ts';
import { type Salts, strangerOf, visitorOf } from './visitors.ts';

/** A scan as it is recorded: what is kept of it, and nothing that could name its reader. */
export interface DerivedScan {
  readonly id: string;
  readonly codeId: string;
  readonly accountId: string;
  readonly scannedAt: number;
  /** The UTC day, `YYYY-MM-DD`. */
  readonly day: string;
  /** The code and the day in one word: what counters belong to. */
  readonly codeDay: string;
  readonly kind: Kind;
  readonly country: string;
  readonly device: Agent['device'];
  readonly operating_system: string;
  readonly browser: string;
  readonly referrer: string;
  /** 64 bits. */
  readonly visitor: bigint;
  /** Whether the visitor can be recognised: the day's salt still exists. */
  readonly recognisable: boolean;
}

/** Derives what is recorded from what was told. Never throws: what can't be told is `unknown`. */
export function derive(told: ToldScan, countryOf: CountryOf, salts: Salts): DerivedScan {
  const { id, codeId, accountId, scannedAt, userAgent, address } = told;
  const agent = agentOf(userAgent);
  const hinted = countryCode(told.countryHint);
  const day = dayOf(scannedAt);
  const salt = salts.get(day);
  return {
    id,
    codeId,
    accountId,
    scannedAt,
    day,
    codeDay: codeDayOf(codeId, day),
    kind: kindOf(agent, told.purpose),
    country: hinted === 'unknown' ? countryOf(address) : hinted,
    device: agent.device,
    operating_system: agent.operatingSystem,
    browser: agent.browser,
    referrer: referrerOf(told.referrer),
    visitor: salt ? visitorOf(salt, address, userAgent) : strangerOf(id),
    recognisable: salt !== undefined,
  };
}

/**
 * Counters are looked up by this word several times a scan; one string for all scans of a code's day is hashed once.
 */
const REMEMBERED = 20_000;
const remembered = new Map<string, { readonly day: string; readonly codeDay: string }>();

function codeDayOf(codeId: string, day: string): string {
  const latest = remembered.get(codeId);
  if (latest?.day === day) return latest.codeDay;
  if (remembered.size >= REMEMBERED) remembered.clear();
  const codeDay = `${codeId} ${day}`;
  remembered.set(codeId, { day, codeDay });
  return codeDay;
}
