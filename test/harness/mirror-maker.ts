import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jars, killWithParent } from './kafka.ts';

/** Starts Kafka's MirrorMaker with its configuration, as `connect-mirror-maker.sh` does. */
export async function startMirrorMaker(properties: string): Promise<{ stop(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'signpost-mirror-'));
  const file = join(folder, 'mirror.properties');
  await writeFile(file, properties);
  const program = ['-cp', `${await jars()}/*`, 'org.apache.kafka.connect.mirror.MirrorMaker', file];
  const mirror: ChildProcess = spawn('java', ['-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', ...program], {
    stdio: 'ignore',
  });
  killWithParent(mirror);
  return {
    async stop() {
      if (mirror.exitCode === null && mirror.signalCode === null) {
        const gone = once(mirror, 'exit');
        mirror.kill('SIGKILL');
        await gone;
      }
      await rm(folder, { recursive: true, force: true });
    },
  };
}
