import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  Page,
  type Policy,
  PolicySchema,
  type Weekly,
  WeeklySchema,
} from '../../proto/gen/signpost/targets/v1/policy_pb.ts';
import { compilePolicy, decide, type Visitor } from './evaluate.ts';
import { policyOf } from './policy.fixture.ts';
import { decideSlowly, isWithin, offsetOf, type PlainVisitor } from './reference.fixture.ts';
import { variantShare } from './variant-share.ts';
import { weeklyTimes } from './weekly.ts';

const HOUR = 3_600_000;
const [FIRST, LAST] = [Date.UTC(2024, 0, 1), Date.UTC(2031, 0, 1)];

const ZONES = [
  'UTC',
  'Europe/Berlin',
  'Europe/London',
  'America/New_York',
  'America/St_Johns',
  'America/Santiago',
  'America/Havana',
  'Africa/Casablanca',
  'Africa/Cairo',
  'Asia/Kathmandu',
  'Asia/Beirut',
  'Australia/Lord_Howe',
  'Pacific/Auckland',
  'Pacific/Chatham',
];

/** When the clocks of a zone are changed, to the hour. */
function changesOf(timeZone: string): number[] {
  const changes: number[] = [];
  for (let day = FIRST; day < LAST; day += 24 * HOUR) {
    if (offsetOf(timeZone, day) === offsetOf(timeZone, day + 24 * HOUR)) continue;
    let at = day;
    while (offsetOf(timeZone, at) === offsetOf(timeZone, at + HOUR)) at += HOUR;
    changes.push(at);
  }
  return changes;
}

const CHANGES = new Map(ZONES.map((zone) => [zone, changesOf(zone)]));

/** Mostly within two days of a change of clocks. */
function instantIn(zone: string): fc.Arbitrary<number> {
  const anywhere = fc.integer({ min: FIRST, max: LAST });
  const changes = CHANGES.get(zone) ?? [];
  if (changes.length === 0) return anywhere;
  const near = fc
    .tuple(fc.constantFrom(...changes), fc.integer({ min: -96, max: 96 }), fc.integer({ min: -1_000, max: 60_000 }))
    .map(([change, halfHours, ms]) => change + (halfHours * HOUR) / 2 + ms);
  return fc.oneof({ weight: 4, arbitrary: near }, { weight: 1, arbitrary: anywhere });
}

const time = fc
  .tuple(fc.integer({ min: 0, max: 23 }), fc.constantFrom(0, 1, 15, 30, 45, 59))
  .map(([hour, minute]) => `${String(hour).padStart(2, '0')}:${String(minute).padStart(2, '0')}`);
const weekly: fc.Arbitrary<Weekly> = fc
  .record({
    timeZone: fc.constantFrom(...ZONES),
    days: fc.subarray(['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'], { minLength: 1 }),
    from: time,
    until: time,
  })
  .map((value) => create(WeeklySchema, value));

const COUNTRIES = ['DE', 'FR', 'US', 'unknown'];
const LANGUAGES = ['de', 'fr', 'fr-ca', 'zh-hant-tw', 'en-us'];
const DEVICES = ['mobile', 'tablet', 'desktop', 'bot', 'other'];
const SYSTEMS = ['ios', 'android', 'windows', 'unknown'];
const name = fc.constantFrom('a', 'b', 'utm_source', 'ä', 'x y');
const target = fc
  .tuple(
    fc.constantFrom(
      'https://example.com/',
      'https://example.com/menu',
      'https://example.com/p?a=1',
      'https://a.example/?b',
      'https://a.example/??a=1',
      'https://a.example/??',
    ),
    fc.constantFrom('', '#top'),
  )
  .map(([address, fragment]) => address + fragment);
const outcome = fc.oneof(
  target.map((value) => ({ case: 'targetUrl' as const, value })),
  fc.constantFrom(Page.PAUSED, Page.GONE).map((value) => ({ case: 'page' as const, value })),
  fc.array(fc.tuple(fc.integer({ min: 1, max: 20 }), target), { minLength: 2, maxLength: 10 }).map((variants) => ({
    case: 'split' as const,
    value: { variants: variants.map(([weight, targetUrl], index) => ({ label: `v${index}`, weight, targetUrl })) },
  })),
);
const instant = fc.integer({ min: FIRST, max: LAST }).map(timestampFromMs);
const conditions = fc.record(
  {
    from: instant,
    until: instant,
    weekly,
    countries: fc.subarray(COUNTRIES),
    languages: fc.subarray(['de', 'FR', 'fr-CA', 'zh-Hant', '*']),
    devices: fc.subarray(DEVICES),
    operatingSystems: fc.subarray(SYSTEMS),
  },
  { requiredKeys: [] },
);
const policy: fc.Arbitrary<Policy> = fc
  .record({
    rules: fc.array(fc.record({ when: fc.option(conditions, { nil: undefined }), kind: outcome }), { maxLength: 6 }),
    passQuery: fc.boolean(),
    parameters: fc.dictionary(name, fc.constantFrom('1', 'ü & more', '')),
  })
  .map(({ rules, ...rest }) =>
    create(PolicySchema, {
      ...rest,
      rules: rules.map(({ when, kind }) => ({ ...(when ? { when } : {}), outcome: { kind } })),
    }),
  );
const visitor: fc.Arbitrary<PlainVisitor> = fc.record({
  at: fc.constantFrom(...ZONES).chain(instantIn),
  country: fc.constantFrom(...COUNTRIES),
  language: fc.option(fc.constantFrom(...LANGUAGES), { nil: undefined }),
  device: fc.constantFrom(...DEVICES),
  operatingSystem: fc.constantFrom(...SYSTEMS),
  share: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  query: fc.constantFrom('', 'a=2', 'c=%C3%A4&a=1&d', 'utm_source=scan&&x+y=2', 'c=100%25 ä#', '?a=1&b=2'),
});

function asVisitor(plain: PlainVisitor): Visitor {
  const { at, query } = plain;
  return {
    at,
    query,
    country: () => plain.country,
    language: () => plain.language,
    device: () => plain.device,
    operatingSystem: () => plain.operatingSystem,
    share: () => plain.share,
  };
}

/** Two spellings of the same address are equal; the evaluator leaves a target as it is, the URL library rewrites it. */
function normalized(target: string | Page): unknown {
  if (typeof target !== 'string') return target;
  const { origin, pathname, searchParams, hash } = new URL(target);
  return { origin, pathname, query: [...searchParams], hash };
}

test('decides as the slow evaluator does, whatever was decided before', () => {
  fc.assert(
    fc.property(policy, target, fc.array(visitor, { minLength: 1, maxLength: 5 }), (rules, targetUrl, visitors) => {
      const compiled = compilePolicy(rules, targetUrl);
      for (const plain of visitors) {
        const decision = decide(compiled, asVisitor(plain));
        const expected = decideSlowly(rules, targetUrl, plain);
        expect({ ...decision, target: normalized(decision.target) }).toEqual({
          ...expected,
          target: normalized(expected.target),
        });
      }
    }),
    { numRuns: 500 },
  );
});

test.each([false, true])(
  'a policy takes little memory, however many of its URLs get long parameters (query: %s)',
  (passQuery) => {
    const parameters = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`p${index}`, 'x'.repeat(256)]));
    const variants = Array.from({ length: 10 }, (_, index) => {
      return { label: `${index}`, weight: 1, target_url: `https://example.com/${index}?p0=own#menu` };
    });
    const rules = Array.from({ length: 20 }, () => ({ then: { split: variants } }));
    const large = policyOf({ rules, parameters, pass_query: passQuery });
    const compiled = compilePolicy(large, 'https://example.com/');
    expect(compiled.bytes).toBeLessThan(200_000);
    expect(compiled.destinations.every((destination) => typeof destination === 'function')).toBe(true);
    const plain = {
      at: FIRST,
      country: 'DE',
      language: 'de',
      device: 'mobile',
      operatingSystem: 'ios',
      query: 'x=1&p1=own',
      share: 0.35,
    };
    const decision = decide(compiled, asVisitor(plain));
    const expected = decideSlowly(large, 'https://example.com/', plain);
    expect({ ...decision, target: normalized(decision.target) }).toEqual({
      ...expected,
      target: normalized(expected.target),
    });
  },
);

test('weekly times are right around changes of clocks, in every zone', () => {
  const times = weekly.chain((value) =>
    fc.record({
      value: fc.constant(value),
      instants: fc.array(instantIn(value.timeZone), { minLength: 1, maxLength: 8 }),
    }),
  );
  fc.assert(
    fc.property(times, ({ value, instants }) => {
      const includes = weeklyTimes(value);
      for (const at of instants) expect(includes(at), new Date(at).toISOString()).toBe(isWithin(value, at));
    }),
    { numRuns: 2_000 },
  );
});

describe('weekly times in Berlin', () => {
  const berlin = (from: string, until: string, ...days: string[]) =>
    weeklyTimes(create(WeeklySchema, { timeZone: 'Europe/Berlin', days, from, until }));

  test.each([
    ['2027-01-04T09:59:59.999Z', false],
    ['2027-01-04T10:00:00.000Z', true],
    ['2027-01-04T13:29:59.999Z', true],
    ['2027-01-04T13:30:00.000Z', false],
    ['2027-01-05T10:00:00.000Z', false],
    // In summer, an hour earlier.
    ['2027-07-05T09:00:00.000Z', true],
  ])('lunch on Mondays: %s is %s', (at, expected) => {
    expect(berlin('11:00', '14:30', 'mon')(Date.parse(at))).toBe(expected);
  });

  test.each([
    // Friday to Saturday, across midnight.
    ['2027-01-01T21:00:00Z', true],
    ['2027-01-02T00:59:59Z', true],
    ['2027-01-02T01:00:00Z', false],
    ['2027-01-02T21:00:00Z', false],
  ])('Friday night: %s is %s', (at, expected) => {
    expect(berlin('22:00', '02:00', 'fri')(Date.parse(at))).toBe(expected);
  });

  test('the hour that is skipped on 28 March 2027, and the one that is repeated on 31 October', () => {
    const night = berlin('02:30', '04:00', 'sun');
    // 02:30 does not exist: it begins at 03:30, which is 01:30 UTC.
    expect(night(Date.parse('2027-03-28T01:29:59Z'))).toBe(false);
    expect(night(Date.parse('2027-03-28T01:30:00Z'))).toBe(true);
    // It begins at the first 02:30 and ends at 04:00, which is 03:00 UTC: after two and a half hours.
    expect(night(Date.parse('2027-10-31T00:30:00Z'))).toBe(true);
    expect(night(Date.parse('2027-10-31T02:59:59Z'))).toBe(true);
    expect(night(Date.parse('2027-10-31T03:00:00Z'))).toBe(false);
  });
});

test('an unknown time zone is rejected', () => {
  expect(() =>
    weeklyTimes(create(WeeklySchema, { timeZone: 'Europe/Atlantis', days: ['mon'], from: '00:00', until: '00:00' })),
  ).toThrow(RangeError);
});

test('policies that have the same conditions and differ in what follows share nothing of that', () => {
  const visitor = { ...asVisitor({ at: 0, query: '' } as PlainVisitor), country: () => 'FR', share: () => 0.5 };
  const split = (labels: readonly string[], weights: readonly number[]) => ({
    split: labels.map((label, at) => ({ label, weight: weights[at], target_url: `https://example.com/${label}` })),
  });
  const outcomes = [
    { target_url: 'https://example.com/one' },
    { target_url: 'https://example.com/two' },
    { page: 'paused' },
    { page: 'gone' },
    split(['a', 'b'], [9, 1]),
    split(['a', 'b'], [1, 9]),
    split(['c', 'd'], [1, 9]),
  ];
  const decisions = outcomes.map((then) => {
    const rules = [
      { name: 'France', when: { countries: ['FR'] }, then },
      { name: 'others', then: { target_url: 'https://example.com/others' } },
    ];
    return decide(compilePolicy(policyOf({ rules }), 'https://example.com/'), visitor);
  });
  expect(decisions).toEqual([
    { rule: 1, variant: '', target: 'https://example.com/one' },
    { rule: 1, variant: '', target: 'https://example.com/two' },
    { rule: 1, variant: '', target: Page.PAUSED },
    { rule: 1, variant: '', target: Page.GONE },
    { rule: 1, variant: 'a', target: 'https://example.com/a' },
    { rule: 1, variant: 'b', target: 'https://example.com/b' },
    { rule: 1, variant: 'd', target: 'https://example.com/d' },
  ]);
});

test('a split keeps its weights over 100,000 visitors, independently for each code and version', () => {
  const split = create(PolicySchema, {
    rules: [
      {
        outcome: {
          kind: {
            case: 'split',
            value: {
              variants: [
                { label: 'a', weight: 3, targetUrl: 'https://example.com/a' },
                { label: 'b', weight: 1, targetUrl: 'https://example.com/b' },
              ],
            },
          },
        },
      },
    ],
  });
  const compiled = compilePolicy(split, 'https://example.com/');
  const variantOf = (code: string, version: number, visitor: number) => {
    const share = () => variantShare(code, version, visitor.toString(16).padStart(16, '0'));
    return decide(compiled, { ...asVisitor({ at: 0, query: '' } as PlainVisitor), share }).variant;
  };
  const visitors = 100_000;
  let [inA, sameInOtherCode, sameInOtherVersion] = [0, 0, 0];
  for (let visitor = 0; visitor < visitors; visitor++) {
    const variant = variantOf('qr_1', 1, visitor);
    if (variant === 'a') inA++;
    if (variant === variantOf('qr_2', 1, visitor)) sameInOtherCode++;
    if (variant === variantOf('qr_1', 2, visitor)) sameInOtherVersion++;
  }
  // Five standard deviations.
  const deviation = (share: number) => 5 * Math.sqrt(visitors * share * (1 - share));
  expect(Math.abs(inA - visitors * 0.75)).toBeLessThan(deviation(0.75));
  // Two independent choices are equal in 3/4 · 3/4 + 1/4 · 1/4 of cases.
  for (const same of [sameInOtherCode, sameInOtherVersion]) {
    expect(Math.abs(same - visitors * 0.625)).toBeLessThan(deviation(0.625));
  }
  expect(variantOf('qr_1', 1, 7)).toBe(variantOf('qr_1', 1, 7));
});
