import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import pg from 'pg';
import { pino } from 'pino';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { commandLine } from '../../cli/cli.fixture.ts';
import { GATEWAY_FIGURES, writeGatewayFigures } from '../../common/contract/gateway-figures.ts';
import { openKafkaLog } from '../../common/log/kafka.ts';
import type { Log } from '../../common/log/log.ts';
import { SCANS } from '../../common/log/topics.ts';
import { DAY_MS } from '../../common/runtime/durations.ts';
import { dayOf } from '../../src/scans/days.ts';
import { logRecord, newScannedCode, type ScannedCode, scanRecord } from '../../src/scans/scans.fixture.ts';
import { afterFile } from '../harness/after-file.ts';
import { startKafka } from '../harness/kafka.ts';
import { type Process, startSignpost } from '../harness/processes.ts';

const EVENTUALLY = { timeout: 60_000, interval: 50 };
const WAVE = 200;
const WAVE_PAUSE_MS = 50;

/** Maximum polls that one recorder processes at a time: if more are blocked, both recorders have some. */
const IN_HAND = 3;
// A broker that this run did not start must not be paused.
const isOwnBroker = inject('kafkaBrokers') !== null && !process.env.KAFKA_BROKERS;

/** Publishes scans, every second one twice, and an invalid record per wave, until stopped. */
function startScans(log: Log, codes: readonly ScannedCode[]) {
  const flow = { scans: 0, unreadable: 0, published: 0 };
  let going = true;
  const publish = async (records: Parameters<Log['publish']>[1]) => {
    await log.publish(SCANS.name, records);
    flow.published += records.length;
  };
  const flowing = (async () => {
    for (let wave = 0; going; wave++) {
      const scans = Array.from({ length: WAVE }, (_, index) => scanRecord(codes[index % codes.length] as ScannedCode));
      await publish([...scans, logRecord(`unreadable ${wave}`, Buffer.from('no protobuf'))]);
      await publish(scans.slice(WAVE / 2));
      flow.scans += WAVE;
      flow.unreadable++;
      await sleep(WAVE_PAUSE_MS);
    }
    // Figures as a gateway reports them, attached to a record.
    const figures = { gateway: '00000000000000aa', day: dayOf(Date.now()), answered: flow.scans + 1, lost: 0 };
    const published = flow.published + 1;
    await publish([
      {
        ...scanRecord(codes[0] as ScannedCode),
        headers: { [GATEWAY_FIGURES]: writeGatewayFigures([{ ...figures, published }]) },
      },
    ]);
    flow.scans++;
  })();
  const stop = async () => {
    going = false;
    await flowing;
  };
  onTestFinished(stop);
  return Object.assign(flow, { stop });
}

describe.skipIf(!isOwnBroker)('recorders as a group over a real Apache Kafka', () => {
  test('one joins, one stops, two are killed, half of the scans are published twice: every scan counts once, and the ledger adds up', async () => {
    const broker = await startKafka();
    afterFile(() => broker.stop());
    const signpost = await startSignpost({ kafkaBrokers: broker.brokers, gateways: 0, cores: 3 });
    const [, second, third] = signpost.cores as [Process, Process, Process];
    const { json } = commandLine(() => signpost);
    const pool = new pg.Pool({ connectionString: signpost.databaseUrl, max: 2 });
    const log = openKafkaLog({ brokers: [broker.brokers], clientId: 'test', logger: pino({ level: 'silent' }) });
    const admin = new kafkajs.Kafka({ brokers: [broker.brokers], logLevel: kafkajs.logLevel.NOTHING }).admin();
    await admin.connect();
    onTestFinished(async () => void (await Promise.all([log.close(), admin.disconnect(), pool.end()])));

    const count = async (from: string) =>
      Number((await pool.query(`select count(*) as count from ${from}`)).rows[0].count);
    const members = async (count: number) =>
      expect
        .poll(async () => {
          const { groups } = await admin.describeGroups(['signpost.recorder']);
          return groups[0]?.state === 'Stable' ? groups[0].members.length : 0;
        }, EVENTUALLY)
        .toBe(count);
    const recordedMore = async () => {
      const before = await count('scans');
      await expect.poll(() => count('scans'), EVENTUALLY).toBeGreaterThan(before + 5 * WAVE);
    };
    /** Blocks every recorder within its transactions; resolves once each is blocked. */
    const blockRecorders = async () => {
      const client = await pool.connect();
      await client.query('begin; lock table scan_days in exclusive mode');
      const waiting = () => count(`pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`);
      await expect.poll(waiting, EVENTUALLY).toBeGreaterThan(IN_HAND);
      return async () => {
        await client.query('rollback');
        client.release();
        await expect.poll(waiting, EVENTUALLY).toBe(0);
      };
    };

    await third.kill('SIGTERM');
    const flow = startScans(log, Array.from({ length: 50 }, newScannedCode));
    await members(2);
    await recordedMore();
    await third.restart();
    await members(3);
    await recordedMore();
    await second.kill('SIGTERM');
    await members(2);
    await recordedMore();

    // Killed within its transactions.
    const unblock = await blockRecorders();
    await third.kill('SIGKILL');
    await unblock();
    await members(1);
    await second.restart();
    await members(2);
    await recordedMore();

    // Killed after its transactions and before it commits its offsets.
    const unblockAgain = await blockRecorders();
    await flow.stop();
    broker.pause();
    const before = await count('scans');
    await unblockAgain();
    await expect.poll(() => count('scans'), EVENTUALLY).toBeGreaterThan(before);
    await second.kill('SIGKILL');
    broker.resume();

    const audit = () => json<Record<string, number>>('scans', 'audit', '--from', dayOf(Date.now() - DAY_MS));
    await expect.poll(async () => (await audit()).waiting, { timeout: 60_000, interval: 500 }).toBe(0);
    const { scans, published, unreadable } = flow;
    expect(await audit()).toEqual({
      answered: scans,
      spooled: scans,
      published,
      recorded: scans,
      duplicates: published - scans - unreadable,
      dead_lettered: unreadable,
      deleted: 0,
      waiting: 0,
      rows: scans,
      archived: 0,
      counted: scans,
      differences: [],
    });
    expect(await count('(select distinct id from scans) ids')).toBe(scans);
    const { rows } = await pool.query('select sum(scans)::integer as scan_count from scan_totals');
    expect(rows).toEqual([{ scan_count: scans }]);
  }, 240_000);
});
