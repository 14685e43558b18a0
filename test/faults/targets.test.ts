import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, inject, test } from 'vitest';
import { policyOf } from '../../common/targets/policy.fixture.ts';
import { startPostgres } from '../../local/postgres.ts';
import { AnalyticsService } from '../../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import type { Policy } from '../../proto/gen/signpost/targets/v1/policy_pb.ts';
import { TargetsService } from '../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { internal } from '../contract/internal.ts';
import { afterFile } from '../harness/after-file.ts';
import { type Broker, startKafka } from '../harness/kafka.ts';
import { type Signpost, startSignpost } from '../harness/processes.ts';

const EVENTUALLY = { timeout: 60_000, interval: 200 };
const TARGET = 'https://example.com/always';
/** How long before the first change of a schedule everything is stopped, in ms. */
const STOP_WITHIN_MS = 40_000;
const VISITORS = 3_000;
const noKafka = inject('kafkaBrokers') === null;

let kafka: Broker;
let signpost: Signpost;
let accountId: string;
let apiKey: string;
let stopAll: () => Promise<void>;
let restartAll: () => Promise<void>;
const agent = new Agent({ keepAlive: true, maxSockets: 32 });
afterFile(async () => agent.destroy());

beforeAll(async () => {
  if (noKafka) return;
  const folder = await mkdtemp(join(tmpdir(), 'signpost-targets-'));
  afterFile(() => rm(folder, { recursive: true, force: true }));
  let postgres = await startPostgres({ folder });
  afterFile(() => postgres.stop());
  kafka = await startKafka();
  afterFile(() => kafka.stop());
  const [databaseUrl, gatewayDatabaseUrl] = [postgres.url, postgres.gatewayUrl];
  signpost = await startSignpost({ databaseUrl, gatewayDatabaseUrl, kafkaBrokers: kafka.brokers, gateways: 2 });
  stopAll = async () => {
    await Promise.all([...signpost.cores.map((core) => core.kill()), kafka.kill(), postgres.stop()]);
  };
  restartAll = async () => {
    [postgres] = await Promise.all([startPostgres({ folder }), kafka.start()]);
    for (const core of signpost.cores) await core.restart();
  };
  ({ accountId, apiKey } = await signpost.createAccount());
});

interface ScannedCode {
  readonly id: string;
  readonly path: string;
}

async function newCode(): Promise<ScannedCode> {
  const response = await fetch(`${signpost.url}/api/v1/qr-codes`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ target_url: TARGET }),
  });
  const { data } = (await response.json()) as { data: { id: string; short_code: string } };
  return { id: data.id, path: `/r/${data.short_code}` };
}

function policy(rules: readonly unknown[]): Policy {
  // Tells a code with this policy from one without.
  return policyOf({ rules, parameters: { by: 'policy' } });
}

/** The path and query that a scan is redirected to, without the host. */
function scan({ path }: ScannedCode, gateway: number, visitor = 'visitor', method = 'GET'): Promise<string> {
  const url = new URL(path, signpost.gateways[gateway]?.url);
  const options = { method, agent, timeout: 20_000, headers: { 'user-agent': visitor } };
  return new Promise((resolve, reject) => {
    const request = get(url, options, (response) => {
      response.resume();
      response.once('error', reject);
      response.once('end', () => resolve(response.headers.location?.replace('https://example.com/', '') ?? 'page'));
    });
    request.once('timeout', () => request.destroy(new Error('the gateway does not answer')));
    request.once('error', reject);
    request.end();
  });
}

/** What a code leads to from each instant on, in ms since 1970. */
type Phases = readonly (readonly [from: number, target: string])[];

/** Scans at a gateway until `end`; returns the wrong answers, and those that were given. */
async function follow(code: ScannedCode, gateway: number, phases: Phases, end: number) {
  const wrong: string[] = [];
  const given = new Map<string, number>();
  const expectedAt = (at: number) => phases.findLast(([from]) => from <= at)?.[1];
  while (Date.now() < end) {
    const sent = Date.now();
    const target = await scan(code, gateway);
    const received = Date.now();
    given.set(target, (given.get(target) ?? 0) + 1);
    // Whenever the gateway answered, it was in between.
    if (![sent, received].map(expectedAt).includes(target)) wrong.push(`${target} at ${new Date(sent).toISOString()}`);
    await sleep(20);
  }
  return { wrong, given };
}

/** Times of the week that begin at an instant on a full minute, on clocks that are 5:45 hours ahead of UTC. */
function weeklyFrom(at: number): object {
  const zone = 'Asia/Kathmandu';
  const local = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(zone);
  const day = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'][local.dayOfWeek - 1];
  const time = (of: Temporal.ZonedDateTime) => of.toPlainTime().toString({ smallestUnit: 'minute' });
  return { time_zone: zone, days: [day], from: time(local), until: time(local.add({ hours: 2 })) };
}

test.skipIf(noKafka)(
  'schedules switch and splits hold at two gateways without core, Postgres and Kafka, and every scan is counted',
  async () => {
    const [dated, weekly, split] = [await newCode(), await newCode(), await newCode()];
    const boundary = Math.ceil((Date.now() + STOP_WITHIN_MS + 8_000) / 60_000) * 60_000;
    const [from, until] = [boundary - 6_000, boundary - 3_000];
    const targets = internal(signpost, TargetsService, accountId);
    const iso = (at: number) => new Date(at).toISOString();
    const to = (path: string) => ({ target_url: `https://example.com/${path}` });
    const variants = [
      { label: 'a', weight: 3, ...to('a') },
      { label: 'b', weight: 1, ...to('b') },
    ];
    await targets.setTarget({
      id: dated.id,
      policy: policy([{ when: { from: iso(from), until: iso(until) }, then: to('dated') }]),
    });
    await targets.setTarget({
      id: weekly.id,
      policy: policy([{ when: { weekly: weeklyFrom(boundary) }, then: to('weekly') }]),
    });
    await targets.setTarget({ id: split.id, policy: policy([{ then: { split: variants } }]) });
    for (const code of [dated, weekly, split]) {
      for (const gateway of [0, 1]) {
        await expect.poll(() => scan(code, gateway, 'nobody', 'HEAD'), EVENTUALLY).toMatch(/\?by=policy$/);
      }
    }

    await stopAll();
    expect(Date.now()).toBeLessThan(from);
    await expect(fetch(`http://127.0.0.1:${signpost.corePort}/`)).rejects.toThrow();

    await sleep(from - 2_000 - Date.now());
    const otherwise = 'always?by=policy';
    const phases: readonly [ScannedCode, Phases][] = [
      [
        dated,
        [
          [0, otherwise],
          [from, 'dated?by=policy'],
          [until, otherwise],
        ],
      ],
      [
        weekly,
        [
          [0, otherwise],
          [boundary, 'weekly?by=policy'],
        ],
      ],
    ];
    const followed = await Promise.all(
      phases.flatMap(([code, of]) => [0, 1].map((gateway) => follow(code, gateway, of, boundary + 2_000))),
    );
    for (const [index, { wrong, given }] of followed.entries()) {
      expect(wrong).toEqual([]);
      expect([...given.keys()].sort()).toEqual([otherwise, index < 2 ? 'dated?by=policy' : 'weekly?by=policy'].sort());
    }

    // Visitors, each at both gateways, some of them again.
    const answers = Array.from({ length: VISITORS }, () => '');
    let next = 0;
    const inTurn = async () => {
      for (let visitor = next++; visitor < VISITORS; visitor = next++) {
        const answer = await scan(split, 0, `visitor ${visitor}`);
        expect(await scan(split, 1, `visitor ${visitor}`)).toBe(answer);
        if (visitor % 10 === 0) expect(await scan(split, 0, `visitor ${visitor}`)).toBe(answer);
        answers[visitor] = answer;
      }
    };
    await Promise.all(Array.from({ length: 16 }, inTurn));
    const inA = answers.filter((answer) => answer === 'a?by=policy').length;
    const inB = answers.filter((answer) => answer === 'b?by=policy').length;
    expect(inA + inB).toBe(VISITORS);
    // Five standard deviations.
    expect(Math.abs(inA - VISITORS * 0.75)).toBeLessThan(5 * Math.sqrt(VISITORS * 0.75 * 0.25));

    await restartAll();
    const analytics = internal(signpost, AnalyticsService, accountId);
    const counted = async (code: ScannedCode) => {
      const { figures } = await analytics.getCodeAnalytics({ id: code.id }).catch(() => ({ figures: undefined }));
      return Object.fromEntries(
        figures?.targets.map(({ version, rule, variant, scans }) => [`${version}/${rule}/${variant}`, Number(scans)]) ??
          [],
      );
    };
    const again = (variant: string) =>
      answers.filter((answer, visitor) => answer === `${variant}?by=policy` && visitor % 10 === 0).length;
    await expect
      .poll(() => counted(split), EVENTUALLY)
      .toEqual({
        '2/1/a': 2 * inA + again('a'),
        '2/1/b': 2 * inB + again('b'),
      });
    for (const [index, code] of [dated, weekly].entries()) {
      const given = followed.slice(index * 2, index * 2 + 2).map(({ given }) => given);
      const sum = (target: string) => given.reduce((total, of) => total + (of.get(target) ?? 0), 0);
      const decided = { '2/0/': sum(otherwise), '2/1/': sum(index === 0 ? 'dated?by=policy' : 'weekly?by=policy') };
      await expect.poll(() => counted(code), EVENTUALLY).toEqual(decided);
    }
  },
  300_000,
);
