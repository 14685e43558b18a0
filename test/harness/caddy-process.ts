import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Starts a real Caddy with this configuration and a data folder of its own. Not ready yet when it resolves. */
export async function spawnCaddy(caddyfile: string): Promise<{ pid: number; stop(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'signpost-caddy-'));
  const config = join(folder, 'Caddyfile');
  await writeFile(config, caddyfile);
  const caddy = spawn('caddy', ['run', '--config', config, '--adapter', 'caddyfile'], {
    env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
    stdio: 'ignore',
  });
  return {
    pid: caddy.pid ?? 0,
    async stop() {
      if (caddy.exitCode === null && caddy.signalCode === null) {
        caddy.kill();
        await once(caddy, 'exit');
      }
      await rm(folder, { recursive: true, force: true });
    },
  };
}
