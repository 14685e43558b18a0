import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, test } from 'vitest';

test('a process that is killed while it writes does not block other writers', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'signpost-routes-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const start = () => {
    const child = fork(join(import.meta.dirname, 'route-writer.fixture.ts'), [folder], { execArgv: [] });
    onTestFinished(() => void child.kill('SIGKILL'));
    return child;
  };
  const survivor = start();
  await once(survivor, 'message');
  for (let round = 0; round < 10; round++) {
    const victim = start();
    await once(victim, 'message');
    victim.kill('SIGKILL');
    await once(victim, 'exit');
    for (let more = 0; more < 3; more++) await once(survivor, 'message');
  }
});
