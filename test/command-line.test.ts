import { rm } from 'node:fs/promises';
import { onTestFinished, test } from 'vitest';
import { runPage } from './harness/console-page.ts';
import { startSignpost } from './harness/processes.ts';

test('the page about the command line shows what really happens, line by line', async () => {
  onTestFinished(async () => {
    for (const file of ['/tmp/table-4.png', '/tmp/table-4.svg']) await rm(file, { force: true });
  });
  const signpost = await startSignpost({ env: { PUBLIC_URL: 'https://sign.example' } });
  await runPage('docs/command-line.md', { signpost });
}, 180_000);
