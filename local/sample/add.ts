import { join, relative } from 'node:path';
import { runTask } from '../task.ts';
import { forgetSample, sampleRequestedAt } from './request.ts';

/**
 * Adds the sample data to the account, `acct_…`, if it was requested and is not complete, in a process of its own, and
 * reports it on the console. What is interrupted continues at the next start. `env`: that of the core. Never rejects
 * for what that process does.
 */
export async function addSample(options: {
  dataDir: string;
  account: string | undefined;
  env: NodeJS.ProcessEnv;
  signal: AbortSignal;
}): Promise<void> {
  const { dataDir, account, env, signal } = options;
  const requestedAt = await sampleRequestedAt(dataDir);
  if (requestedAt === undefined || account === undefined) return;
  console.log('Sample data is being added to the account: codes, a batch and three months of scans.');
  const log = join(dataDir, 'logs/sample.log');
  const command = [process.execPath, 'local/sample/main.ts', account, String(requestedAt)] as const;
  if (await runTask({ command, env, log, signal })) {
    await forgetSample(dataDir);
    console.log('The sample data is complete.');
  } else if (!signal.aborted) {
    console.error(
      `The sample data could not be completed; see ${relative(process.cwd(), log)}. The next start tries again.`,
    );
  }
}
