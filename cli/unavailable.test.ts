import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { frame } from '../gateway/redirect/spool/frame.fixture.ts';
import { LOOPBACK } from '../local/free-port.ts';
import { ScanSchema } from '../proto/gen/signpost/scans/v1/scan_pb.ts';
import { afterFile } from '../test/harness/after-file.ts';
import { freshDatabase } from '../test/harness/database.ts';
import { openTcpProxy, type TcpProxy } from '../test/harness/open-tcp-proxy.ts';
import { type Signpost, startSignpost } from '../test/harness/processes.ts';
import { commandLine } from './cli.fixture.ts';

/** A server that does not exist. */
const NOBODY = `postgres://signpost_gateway@${LOOPBACK}:1/signpost`;

let postgres: TcpProxy;
let kafka: TcpProxy;
let signpost: Signpost;
beforeAll(async () => {
  postgres = await openTcpProxy((await freshDatabase()).url);
  kafka = await openTcpProxy(`tcp://${LOOPBACK}:1`);
  afterFile(async () => {
    postgres.close();
    kafka.close();
  });
  kafka.cut();
  signpost = await startSignpost({ gateways: 0, databaseUrl: postgres.url, kafkaBrokers: new URL(kafka.url).host });
});

const { run } = commandLine(() => signpost);

test.each([['events audit'], ['events republish'], ['scans audit']])(
  'without Kafka, `%s` says that it is unavailable',
  async (command) => {
    expect(await run(command.split(' '))).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^Kafka is unavailable: (Closed connection|Connection .*)\n$/),
    });
  },
);

test('`scans reship` says whether Kafka or Postgres is unavailable', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'signpost-reship-'));
  onTestFinished(() => rm(dataDir, { recursive: true }));
  const id = Buffer.alloc(16);
  id.writeUIntBE(Date.now(), 0, 6);
  await mkdir(join(dataDir, 'spool/0'), { recursive: true });
  const segment = join(dataDir, 'spool/0/000000000000001.scans');
  await writeFile(segment, frame(toBinary(ScanSchema, create(ScanSchema, { id }))));
  const reship = (env: Record<string, string>) =>
    run(['scans', 'reship', '--since', '2026-01-01T00:00:00Z'], { DATA_DIR: dataDir, DATABASE_URL: NOBODY, ...env });
  expect(await reship({ KAFKA_BROKERS: new URL(kafka.url).host })).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^Kafka is unavailable: (Closed connection|Connection .*)\n$/),
  });
  expect(await reship({ KAFKA_BROKERS: '' })).toMatchObject({
    code: 1,
    stderr: `Postgres is unavailable: connect ECONNREFUSED ${LOOPBACK}:1\n`,
  });
});

test.each([['account list'], ['events audit'], ['scans audit']])(
  'without Postgres, `%s` says that it is unavailable',
  async (command) => {
    postgres.cut();
    expect(await run(command.split(' '))).toEqual({
      code: 1,
      stdout: '',
      stderr: 'Postgres is unavailable to the core, which logs why; try again.\n',
    });
  },
);
