import { expect, inject, test } from 'vitest';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { afterFile } from '../harness/after-file.ts';
import { startKafka } from '../harness/kafka.ts';
import { startPostgresPair } from '../harness/postgres-pair.ts';
import { startSignpost } from '../harness/processes.ts';
import { api, expectRecorded, recordedScans, startScans } from './power-cut-load.ts';

const EVENTUALLY = { timeout: 60_000, interval: 200 };

test.skipIf(inject('kafkaBrokers') === null)(
  'scans whose recording a failover to an asynchronous standby has lost are recorded from Kafka again',
  async () => {
    const kafka = await startKafka();
    afterFile(() => kafka.stop());
    const pair = await startPostgresPair();
    const wanted = { target_session_attrs: 'read-write' };
    const both = pair.hosts.join();
    const signpost = await startSignpost({
      databaseUrl: pair.url(both, wanted),
      gatewayDatabaseUrl: pair.url(both, wanted, 'gateway'),
      kafkaBrokers: kafka.brokers,
      cores: 1,
    });
    const { apiKey } = await signpost.createAccount();
    const create = async () => {
      const created = await api(signpost, apiKey, 'POST', '/qr-codes', { target_url: 'https://example.com/' });
      return ((await created.json()) as { data: CodeJson }).data;
    };
    const code = await create();
    // Most likely in a partition of which the standby knows nothing.
    const later = await create();
    const scan = async (round: number, count: number, { short_code } = code) => {
      const scans = startScans(`${signpost.url}/r/${short_code}`, round, 2);
      await expect.poll(() => scans.answered.size, EVENTUALLY).toBeGreaterThan(count);
      await scans.stop();
      return scans.answered;
    };
    const [primary, standby] = pair.hosts.map((host) => pair.url(host)) as [string, string];

    const first = await scan(0, 50);
    await expectRecorded(primary, code, first);
    await pair.detachStandby();
    const second = await scan(1, 200);
    await expectRecorded(primary, code, second);
    const secondOfLater = await scan(3, 50, later);
    await expectRecorded(primary, later, secondOfLater);
    await pair.killPrimary();
    await pair.promote();
    expect([...(await recordedScans(standby, code)).keys()].filter((name) => second.has(name))).toEqual([]);
    const third = await scan(2, 20);
    await expectRecorded(standby, code, new Map([...first, ...second, ...third]));
    const thirdOfLater = await scan(4, 20, later);
    await expectRecorded(standby, later, new Map([...secondOfLater, ...thirdOfLater]));
  },
  240_000,
);
