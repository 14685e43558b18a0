import { create, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { v7 } from 'uuid';
import { DAY_MS, HOUR_MS } from '../../common/runtime/durations.ts';
import { type CompiledPolicy, compilePolicy, type Decision, decide } from '../../common/targets/evaluate.ts';
import { variantShare } from '../../common/targets/variant-share.ts';
import { ScanSchema } from '../../proto/gen/signpost/scans/v1/scan_pb.ts';
import type { ScannedCode } from './create-content.ts';
import { type Random, randomFrom } from './random.ts';
import type { ScanPattern } from './sample-code.ts';
import { deviceOf, drawVisitor, type Visitor } from './visitors.ts';

/** A scan to publish. */
export interface SampleScan {
  /** `qr_…`. */
  readonly codeId: string;
  /** In ms since 1970. */
  readonly at: number;
  /** The serialized `signpost.scans.v1.Scan`. */
  readonly message: Uint8Array;
}

/** The period of the scans. */
const DAYS = 91;

/** Shares of the hours of a day, from midnight UTC on. */
const HOURS: Record<ScanPattern['hours'], readonly number[]> = {
  meals: [1, 0, 0, 0, 0, 0, 0, 1, 3, 4, 5, 14, 38, 40, 18, 7, 8, 20, 44, 52, 42, 22, 9, 3],
  shops: [0, 0, 0, 0, 0, 1, 3, 8, 18, 24, 28, 32, 38, 36, 30, 28, 30, 34, 26, 14, 8, 4, 2, 1],
  work: [0, 0, 0, 0, 1, 3, 10, 18, 20, 18, 14, 10, 6, 12, 16, 16, 12, 8, 5, 4, 3, 2, 1, 0],
};

/** Scans on each day of the week compared with the average, from Sunday on. */
const WEEKDAYS: Record<ScanPattern['hours'], readonly number[]> = {
  meals: [1.15, 0.62, 0.7, 0.82, 0.98, 1.35, 1.5],
  shops: [0.85, 0.8, 0.85, 0.9, 1, 1.2, 1.45],
  work: [0.3, 1.35, 1.2, 1.2, 1.2, 1.1, 0.6],
};

/** Visitors of a code on a day for each scan: some scan more than once. */
const VISITORS_A_SCAN = 0.8;

/**
 * The scans of these codes in the `DAYS` before `until` (ms since 1970), in no order. The same arguments give the same
 * scans, with the same ids, so a scan that is published twice is recorded once. `account`: `acct_…`; `host`: of scan
 * URLs.
 */
export function scansOf(options: {
  account: string;
  host: string;
  codes: readonly ScannedCode[];
  until: number;
}): SampleScan[] {
  const { codes, until } = options;
  const firstDay = Math.floor(until / DAY_MS) - DAYS + 1;
  return codes.flatMap((code, index) => {
    // Of its own, so that one code's scans do not depend on another's.
    const random = randomFrom(index + 1);
    const policies = policiesOf(code);
    return Array.from({ length: DAYS }, (_, day) => firstDay + day).flatMap((day) => {
      const count = countOn(code.pattern, day, until, random);
      return Array.from({ length: count }, () => scanOn(day, { ...options, code, policies, random, count })).filter(
        ({ at }) => at < until,
      );
    });
  });
}

/** How many scans a whole day has: more on busy days of the week, and more from month to month. */
function countOn(pattern: ScanPattern, day: number, until: number, random: Random): number {
  const noise = 0.75 + 0.5 * random.fraction();
  const rounding = random.fraction();
  const daysAgo = Math.floor(until / DAY_MS) - day;
  const { perDay, hours, firstDaysAgo = DAYS, lastDaysAgo = 0 } = pattern;
  if (daysAgo > firstDaysAgo || daysAgo < lastDaysAgo) return 0;
  const weekday = WEEKDAYS[hours][new Date(day * DAY_MS).getUTCDay()] ?? 1;
  const growth = 1.25 - (0.5 * daysAgo) / DAYS;
  return Math.floor(perDay * weekday * growth * noise + rounding);
}

interface DayOptions {
  readonly account: string;
  readonly host: string;
  readonly code: ScannedCode;
  readonly policies: readonly DatedPolicy[];
  readonly until: number;
  readonly random: Random;
  /** The number of scans of the code on this day. */
  readonly count: number;
}

function scanOn(day: number, { account, host, code, policies, until, random, count }: DayOptions): SampleScan {
  const at = day * DAY_MS + timeOfDay(HOURS[code.pattern.hours], random);
  const visitor = drawVisitor(random);
  const number = random.between(1, Math.max(1, Math.round(count * VISITORS_A_SCAN)));
  const hash = Buffer.alloc(8);
  hash.writeUInt32BE(day);
  hash.writeUInt32BE(Math.imul(number, 0x9e37_79b1) >>> 0, 4);
  const bits = Uint8Array.from({ length: 16 }, () => random.between(0, 255));
  const decided = decidedFor(code.id, { at, visitor, hash: hash.toString('hex') }, policies, until);
  const scan = create(ScanSchema, {
    id: v7({ msecs: at, random: bits, seq: new DataView(bits.buffer).getUint32(0) }, new Uint8Array(16)),
    codeId: code.id,
    accountId: account,
    scannedAt: timestampFromMs(at),
    host,
    visitor: hash,
    ...visitor,
    ...decided,
  });
  return { codeId: code.id, at, message: toBinary(ScanSchema, scan) };
}

/** A time of a day, in ms after midnight. */
function timeOfDay(shares: readonly number[], random: Random): number {
  let left = random.fraction() * shares.reduce((sum, share) => sum + share, 0);
  const hour = shares.findIndex((share) => {
    left -= share;
    return left < 0;
  });
  return hour * HOUR_MS + random.between(0, HOUR_MS - 1);
}

/** What decides from some day on; undefined without a policy. */
interface DatedPolicy {
  readonly daysAgo: number;
  readonly version: number;
  readonly policy: CompiledPolicy | undefined;
}

function policiesOf({ versions }: ScannedCode): DatedPolicy[] {
  return versions.map(({ daysAgo, target: { version, policy, targetUrl } }) => ({
    daysAgo,
    version,
    policy: policy && compilePolicy(policy, targetUrl),
  }));
}

/** What a gateway would have written about the target of a scan; nothing without a policy. */
function decidedFor(
  codeId: string,
  { at, visitor, hash }: { at: number; visitor: Visitor; hash: string },
  policies: readonly DatedPolicy[],
  until: number,
): { targetVersion: number; targetRule: number; targetVariant: string } | undefined {
  const current = policies.findLast(({ daysAgo }) => at >= until - daysAgo * DAY_MS);
  if (!current?.policy) return undefined;
  const { version, policy } = current;
  const { device, operatingSystem } = deviceOf(visitor);
  const { rule, variant }: Decision = decide(policy, {
    at,
    country: () => visitor.country || 'unknown',
    language: () => undefined,
    device: () => device,
    operatingSystem: () => operatingSystem,
    share: () => variantShare(codeId, version, hash),
    query: '',
  });
  return { targetVersion: version, targetRule: rule, targetVariant: variant };
}
