import { readFile } from 'node:fs/promises';
import { pino } from 'pino';
import { expect, inject, test } from 'vitest';
import { openLog } from '../../common/log/open.ts';
import { ROUTES, SCANS } from '../../common/log/topics.ts';
import { LOOPBACK } from '../../local/free-port.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { internal } from '../contract/internal.ts';
import { afterFile } from '../harness/after-file.ts';
import { startKafka } from '../harness/kafka.ts';
import { startMirrorMaker } from '../harness/mirror-maker.ts';
import { startSignpost } from '../harness/processes.ts';

const EVENTUALLY = { timeout: 60_000, interval: 200 };
const SCANS_EACH = 300;

/** The configuration in `deploy/`, for single brokers on this machine. */
async function mirrorSettings(home: string, region: string): Promise<string> {
  const settings = await readFile('deploy/mirror.properties', 'utf8');
  return `${settings
    .replace('kafka.home.example:9092', home)
    .replace('kafka.region.example:9092', region)
    .replace(/replication\.factor = 3/g, 'replication.factor = 1')}
refresh.topics.interval.seconds = 1
home.offset.flush.interval.ms = 1000
region.offset.flush.interval.ms = 1000
`;
}

test.skipIf(inject('kafkaBrokers') === null)(
  'a gateway of a region with its own Kafka answers all codes, and its scans are counted once, while the mirror is killed',
  async () => {
    const [home, region] = await Promise.all([startKafka(), startKafka()]);
    afterFile(() => home.stop());
    afterFile(() => region.stop());
    const log = await openLog({
      kafkaBrokers: [region.brokers],
      databaseUrl: '',
      clientId: 'test',
      logger: pino({ level: 'silent' }),
    });
    await log.ensureTopics([ROUTES, SCANS]);
    await log.close();
    const signpost = await startSignpost({
      kafkaBrokers: home.brokers,
      gatewayEnv: { KAFKA_BROKERS: region.brokers },
      // What the region knows it has from its Kafka.
      gatewayDatabaseUrl: `postgres://gateway@${LOOPBACK}:9/none`,
    });
    const settings = await mirrorSettings(home.brokers, region.brokers);
    let mirror = await startMirrorMaker(settings);
    afterFile(() => mirror.stop());

    const { accountId } = await signpost.createAccount();
    const codes = internal(signpost, CodesService, accountId);
    const { code } = await codes.createCode({ targetUrl: 'https://example.com/first' });
    if (!code) throw new Error('no code');
    const scan = async () => {
      const response = await fetch(`${signpost.url}/r/${code.shortCode}`, { redirect: 'manual' });
      return response.headers.get('location') ?? response.status;
    };
    const head = async () => {
      const response = await fetch(`${signpost.url}/r/${code.shortCode}`, { redirect: 'manual', method: 'HEAD' });
      return response.headers.get('location');
    };
    const scans = async () => (await codes.getCode({ id: code.id })).code?.scanCount;

    await expect.poll(head, EVENTUALLY).toBe('https://example.com/first');
    for (let sent = 0; sent < SCANS_EACH; sent++) expect(await scan()).toBe('https://example.com/first');
    // Some scans are mirrored then, and it does not know of all of them that they are.
    await expect.poll(scans, EVENTUALLY).not.toBe(0n);
    await mirror.stop();
    for (let sent = 0; sent < SCANS_EACH; sent++) expect(await scan()).toBe('https://example.com/first');
    const change = { updateMask: { paths: ['target_url'] }, targetUrl: 'https://example.com/second' };
    await codes.updateCode({ id: code.id, ...change });
    mirror = await startMirrorMaker(settings);
    await expect.poll(head, EVENTUALLY).toBe('https://example.com/second');
    await expect.poll(scans, EVENTUALLY).toBe(BigInt(2 * SCANS_EACH));
  },
  240_000,
);
