import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { LOOPBACK } from '../../../local/free-port.ts';

/** How long a server may take to answer and to end, in ms. */
const WITHIN_MS = 30_000;

interface ServerOptions {
  readonly command: string;
  readonly args?: readonly string[];
  readonly cwd: string;
  /** Its whole environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly port: number;
  /** The file that it prints to. */
  readonly log: string;
  readonly running: AsyncDisposableStack;
}

/** Starts a server of a peer, waits until its port answers HTTP, and gives its process; it ends with `running`. */
export async function startServer({
  command,
  args = [],
  cwd,
  env,
  port,
  log,
  running,
}: ServerOptions): Promise<number> {
  const output = await open(log, 'a');
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', output.fd, output.fd] });
  await output.close();
  const ended = once(child, 'exit');
  const kill = () => void child.kill('SIGKILL');
  process.on('exit', kill);
  running.defer(async () => {
    child.kill();
    await Promise.race([ended, sleep(WITHIN_MS, undefined, { ref: false }).then(kill)]);
    await ended;
    process.off('exit', kill);
  });
  for (const until = Date.now() + WITHIN_MS; ; await sleep(50)) {
    try {
      await (await fetch(`http://${LOOPBACK}:${port}/`, { redirect: 'manual' })).arrayBuffer();
      return child.pid ?? 0;
    } catch (error) {
      if (child.exitCode !== null || Date.now() > until) {
        throw new Error(`${command} does not answer at port ${port}; see ${log}`, { cause: error });
      }
    }
  }
}
