import { spawnSync } from 'node:child_process';

/** Whether promtool, of Debian's package `prometheus`, is installed. With `CI=true` it must be. */
export const hasPromtool = spawnSync('promtool', ['--version']).status === 0;

if (!hasPromtool && process.env.CI === 'true') throw new Error('Tests of alerts need promtool: install prometheus.');

/** What promtool complains about; empty if nothing. */
export function promtool(args: readonly string[], input = ''): string {
  const { status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8', timeout: 20_000 });
  return status === 0 ? '' : `${stdout}${stderr}`;
}
