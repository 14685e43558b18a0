import { countryCode } from '../../../common/contract/countries.ts';
import { checkedHost } from '../../../common/contract/referrer.ts';
import { dayOf } from '../days.ts';
import type { ToldScan } from './read-scan.ts';
import { type Agent, agentOf, type Kind, kindOf } from './user-agent.ts';
import { strangerOf } from './visitors.ts';

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
  /** Whether the visitor can be recognised: the visitors of that day are not forgotten yet. */
  readonly recognisable: boolean;
}

/**
 * Derives what is recorded from what was told. Never throws: what can't be told is `unknown`. `firstDay`: visitors of
 * earlier days are forgotten, so that one who came that day can be recognised by nobody.
 */
export function derive(told: ToldScan, firstDay: string): DerivedScan {
  const { id, codeId, accountId, scannedAt, referrerHost } = told;
  const agent = agentOf(told.userAgent);
  const day = dayOf(scannedAt);
  const visitor = day >= firstDay ? told.visitor : undefined;
  return {
    id,
    codeId,
    accountId,
    scannedAt,
    day,
    codeDay: codeDayOf(codeId, day),
    kind: kindOf(agent, told.purpose),
    country: countryCode(told.country),
    device: agent.device,
    operating_system: agent.operatingSystem,
    browser: agent.browser,
    referrer: referrerHost === '' ? 'direct' : checkedHost(referrerHost),
    visitor: visitor ?? strangerOf(id),
    recognisable: visitor !== undefined,
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
