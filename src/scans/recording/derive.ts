import { countryCode } from '../../../common/contract/countries.ts';
import { checkedHost } from '../../../common/contract/referrer.ts';
import { type Agent, agentOf, type Kind, kindOf } from '../../../common/contract/user-agent.ts';
import { dayOf } from '../days.ts';
import type { DecodedScan, ScanTarget } from './decode-scan.ts';
import { unmatchedVisitor } from './visitors.ts';

/** A scan as it is stored, without anything that identifies the person who scanned. */
export interface DerivedScan {
  readonly id: string;
  readonly codeId: string;
  readonly accountId: string;
  readonly scannedAt: number;
  /** The UTC day, `YYYY-MM-DD`. */
  readonly day: string;
  /** Key of the code's day, `{codeId} {day}`: counters are per code and day. */
  readonly codeDay: string;
  readonly kind: Kind;
  readonly country: string;
  readonly device: Agent['device'];
  readonly operating_system: string;
  readonly browser: string;
  readonly referrer: string;
  readonly target: ScanTarget | undefined;
  /** 64 bits. */
  readonly visitor: bigint;
  /** Whether the visitor can be compared with others of that day: false once that day's visitors are deleted. */
  readonly recognisable: boolean;
}

/**
 * Derives the stored form of a scan. Never throws: what cannot be determined is `unknown`. `firstDay` is the first day
 * whose visitors are still stored; scans of earlier days get a visitor of their own.
 */
export function derive(decoded: DecodedScan, firstDay: string): DerivedScan {
  const { id, codeId, accountId, scannedAt, referrerHost } = decoded;
  const agent = agentOf(decoded.userAgent);
  const day = dayOf(scannedAt);
  const visitor = day >= firstDay ? decoded.visitor : undefined;
  return {
    id,
    codeId,
    accountId,
    scannedAt,
    day,
    codeDay: codeDayOf(codeId, day),
    kind: kindOf(agent, decoded.purpose),
    country: countryCode(decoded.country),
    device: agent.device,
    operating_system: agent.operatingSystem,
    browser: agent.browser,
    referrer: referrerHost === '' ? 'direct' : checkedHost(referrerHost),
    target: decoded.target,
    visitor: visitor ?? unmatchedVisitor(id),
    recognisable: visitor !== undefined,
  };
}

/**
 * Recent keys: counters look a key up several times a scan, and a string shared by all scans of a code's day is hashed
 * once.
 */
const MAX_CACHED = 20_000;
const cache = new Map<string, { readonly day: string; readonly codeDay: string }>();

function codeDayOf(codeId: string, day: string): string {
  const cached = cache.get(codeId);
  if (cached?.day === day) return cached.codeDay;
  if (cache.size >= MAX_CACHED) cache.clear();
  const codeDay = `${codeId} ${day}`;
  cache.set(codeId, { day, codeDay });
  return codeDay;
}
