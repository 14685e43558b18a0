import { beforeAll, expect, test } from 'vitest';
import { LOOPBACK } from '../local/free-port.ts';
import { afterFile } from '../test/harness/after-file.ts';
import { freshDatabase } from '../test/harness/database.ts';
import { openTcpProxy, type TcpProxy } from '../test/harness/open-tcp-proxy.ts';
import { type Signpost, startSignpost } from '../test/harness/processes.ts';
import { commandLine } from './cli.fixture.ts';

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
  signpost = await startSignpost({ databaseUrl: postgres.url, kafkaBrokers: new URL(kafka.url).host });
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
