import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { freePort, LOOPBACK } from '../local/free-port.ts';
import { freshDatabase } from '../test/harness/database.ts';

let databaseUrl: string;
beforeAll(async () => {
  databaseUrl = (await freshDatabase()).url;
});

/** For starts on a busy machine, in ms. */
const STARTS_MS = 120_000;

/** Expects that a core with these variables does not start, and prints nothing but a sentence. */
async function expectSentence(env: Readonly<Record<string, string>>, sentence: string): Promise<void> {
  const core = spawn(process.execPath, ['src/main.ts'], {
    env: {
      ...process.env,
      DATABASE_URL: databaseUrl,
      SECRET_KEY: randomBytes(32).toString('base64'),
      ROLES: 'rpc',
      CORE_PORT: '0',
      GRPC_PORT: '0',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [[code], stdout, stderr] = await Promise.all([once(core, 'exit'), text(core.stdout), text(core.stderr)]);
  expect({ code, stderr }).toEqual({ code: 1, stderr: `${sentence}\n` });
  expect(stdout).not.toMatch(/"level":[56]0/);
}

test(
  'a port in use is named',
  async () => {
    const other = createServer().listen(0, LOOPBACK);
    onTestFinished(() => void other.close());
    await once(other, 'listening');
    const port = String((other.address() as AddressInfo).port);
    await expectSentence({ CORE_PORT: port }, `CORE_PORT ${port} can't be listened on: it is in use.`);
    await expectSentence({ GRPC_PORT: port }, `GRPC_PORT ${port} can't be listened on: it is in use.`);
    const both = String(await freePort());
    await expectSentence({ CORE_PORT: both, GRPC_PORT: both }, `GRPC_PORT ${both} can't be listened on: it is in use.`);
  },
  STARTS_MS,
);

test(
  'a LISTEN_HOST of another machine, or of none, is named',
  async () => {
    await expectSentence(
      { LISTEN_HOST: '192.0.2.1' },
      'LISTEN_HOST is not an address of this machine (EADDRNOTAVAIL).',
    );
    await expectSentence(
      { LISTEN_HOST: 'nonsense.invalid' },
      'LISTEN_HOST is not an address of this machine (ENOTFOUND).',
    );
  },
  STARTS_MS,
);
