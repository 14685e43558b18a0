import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open } from 'node:fs/promises';
import { type AddressInfo, BoundSocket } from 'node:net';
import { join } from 'node:path';
import { LOOPBACK } from '../../local/free-port.ts';
import { afterFile } from './after-file.ts';
import type { Signpost } from './processes.ts';

/** A gateway that is given its listening socket, which this process keeps open as systemd does. */
export interface InheritedGateway {
  readonly url: string;
  readonly pid: number;
  /** Stops it as systemd does, and starts the next one when it has exited; resolves when that is ready. */
  replace(): Promise<void>;
}

/** Sets the variable that must contain the process id, and becomes the gateway. */
const ACTIVATE = 'LISTEN_PID=$$ exec "$0" gateway/main.ts';

/** Starts it for a running Signpost, with a `DATA_DIR` of its own. */
export async function startInheritedGateway(
  signpost: Signpost,
  more: Readonly<Record<string, string>> = {},
): Promise<InheritedGateway> {
  const socket = new BoundSocket({ host: LOOPBACK, port: 0 });
  const { port } = socket.address() as AddressInfo;
  const folder = join(signpost.dataDir, 'inherited');
  await mkdir(folder);
  const log = await open(join(signpost.dataDir, 'inherited.log'), 'a');
  const env = {
    PATH: process.env.PATH,
    PORT: String(port),
    LISTEN_FDS: '1',
    DATA_DIR: folder,
    DATABASE_URL: signpost.databaseUrl,
    CORE_ADDRESS: signpost.coreAddress,
    PUBLIC_URL: signpost.url,
    GATEWAY_WORKERS: '2',
    ...more,
  };
  let gateway: ChildProcess;

  async function start(): Promise<void> {
    gateway = spawn('sh', ['-c', ACTIVATE, process.execPath], {
      env,
      stdio: ['ignore', log.fd, log.fd, socket.fd(), 'ipc'],
    });
    await once(gateway, 'message');
  }
  async function stop(): Promise<void> {
    gateway.kill('SIGTERM');
    await once(gateway, 'exit');
  }
  await start();
  afterFile(async () => {
    await stop();
    socket.close();
    await log.close();
  });
  return {
    url: `http://${LOOPBACK}:${port}`,
    get pid() {
      return gateway.pid ?? 0;
    },
    async replace() {
      await stop();
      await start();
    },
  };
}
