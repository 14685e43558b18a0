import { afterFile } from './after-file.ts';
import { spawnCaddy } from './caddy-process.ts';

/** Starts a real Caddy with this configuration. It is stopped after the calling file's tests. */
export async function startCaddy(caddyfile: string): Promise<void> {
  const caddy = await spawnCaddy(caddyfile);
  afterFile(caddy.stop);
}
