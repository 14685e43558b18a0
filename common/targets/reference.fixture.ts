import { timestampMs } from '@bufbuild/protobuf/wkt';
import { type Conditions, Page, type Policy, type Weekly } from '../../proto/gen/signpost/targets/v1/policy_pb.ts';
import type { Decision } from './evaluate.ts';

/** What a visitor is, as plain values. */
export interface PlainVisitor {
  readonly at: number;
  readonly country: string;
  readonly language: string | undefined;
  readonly device: string;
  readonly operatingSystem: string;
  readonly share: number;
  readonly query: string;
}

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

/** Decides as the documentation says, step by step, without any cache and with `Intl` instead of `Temporal`. */
export function decideSlowly(policy: Policy, targetUrl: string, visitor: PlainVisitor): Decision {
  for (const [index, { when, outcome }] of policy.rules.entries()) {
    if (when && !allHold(when, visitor)) continue;
    const rule = index + 1;
    if (outcome?.kind.case === 'page') return { rule, variant: '', target: outcome.kind.value };
    if (outcome?.kind.case === 'targetUrl') {
      return { rule, variant: '', target: withParameters(outcome.kind.value, policy, visitor.query) };
    }
    if (outcome?.kind.case === 'split') {
      // Every variant as often as its weight says, and the visitor's share of that list.
      const list = outcome.kind.value.variants.flatMap((variant) =>
        Array.from({ length: variant.weight }, () => variant),
      );
      const variant = list[Math.floor(visitor.share * list.length)];
      if (!variant) throw new Error('a split without variants');
      return { rule, variant: variant.label, target: withParameters(variant.targetUrl, policy, visitor.query) };
    }
    return { rule, variant: '', target: Page.GONE };
  }
  return { rule: 0, variant: '', target: withParameters(targetUrl, policy, visitor.query) };
}

function allHold(when: Conditions, visitor: PlainVisitor): boolean {
  if (when.from && visitor.at < timestampMs(when.from)) return false;
  if (when.until && visitor.at >= timestampMs(when.until)) return false;
  if (when.weekly && !isWithin(when.weekly, visitor.at)) return false;
  if (when.countries.length > 0 && !when.countries.includes(visitor.country)) return false;
  if (when.devices.length > 0 && !when.devices.includes(visitor.device)) return false;
  if (when.operatingSystems.length > 0 && !when.operatingSystems.includes(visitor.operatingSystem)) return false;
  if (when.languages.length === 0) return true;
  const { language } = visitor;
  if (language === undefined) return false;
  const prefixes = language.split('-').map((_, index, parts) => parts.slice(0, index + 1).join('-'));
  return when.languages.some((range) => range === '*' || prefixes.includes(range.toLowerCase()));
}

/** Whether any of the intervals that begin within four days of the instant includes it. */
export function isWithin({ timeZone, days, from, until }: Weekly, at: number): boolean {
  for (let day = -4; day <= 4; day++) {
    const midnight = Math.floor((at + offsetOf(timeZone, at)) / DAY) * DAY + day * DAY;
    if (!days.includes(DAYS[new Date(midnight).getUTCDay()] ?? '')) continue;
    const start = instantOf(timeZone, midnight + minutesOf(from) * MINUTE);
    const endDay = minutesOf(until) > minutesOf(from) ? midnight : midnight + DAY;
    const end = instantOf(timeZone, endDay + minutesOf(until) * MINUTE);
    if (start <= at && at < end) return true;
  }
  return false;
}

function minutesOf(time: string): number {
  const [hours, minutes] = time.split(':').map(Number);
  return (hours ?? 0) * 60 + (minutes ?? 0);
}

/** The instant at which clocks show a local time, given as if it were UTC: the first of two; see RFC 5545 for none. */
function instantOf(timeZone: string, local: number): number {
  const [before, after] = [offsetOf(timeZone, local - DAY), offsetOf(timeZone, local + DAY)];
  const found = [local - before, local - after].filter((instant) => instant + offsetOf(timeZone, instant) === local);
  return found.length > 0 ? Math.min(...found) : local - before;
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** How far local clocks are ahead of UTC, in ms. */
export function offsetOf(timeZone: string, at: number): number {
  const format =
    formats.get(timeZone) ??
    new Intl.DateTimeFormat('en-US', {
      timeZone,
      hourCycle: 'h23',
      ...{ year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' },
    });
  formats.set(timeZone, format);
  const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
  const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(at / 1_000) * 1_000;
}

/** The target with the policy's parameters and the scan's, by the URL library. */
function withParameters(targetUrl: string, policy: Policy, query: string): string {
  const url = new URL(targetUrl);
  const own = new Set(url.searchParams.keys());
  for (const [name, value] of Object.entries(policy.parameters)) {
    if (!own.has(name)) url.searchParams.append(name, value);
  }
  const fixed = new Set(url.searchParams.keys());
  if (policy.passQuery) {
    for (const [name, value] of new URLSearchParams(`?${query}`))
      if (!fixed.has(name)) url.searchParams.append(name, value);
  }
  return url.href;
}
