import { expect, test } from 'vitest';
import { startSignpost } from './processes.ts';

test('a core that a test left suspended is stopped too', async () => {
  const { cores, stop } = await startSignpost({ gateways: 0 });
  const [core] = cores;
  process.kill(core?.pid ?? 0, 'SIGSTOP');
  await stop();
  expect(await core?.ended).toMatch(/with code 0/);
});
