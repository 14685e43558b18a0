import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { expect, onTestFinished, test } from 'vitest';
import { policyFromJson } from '../common/targets/policy-json.ts';
import { runPage } from './harness/console-page.ts';
import { startSignpost } from './harness/processes.ts';

const PAGE = 'docs/targets.md';

test('the page about targets shows what really happens, line by line', async () => {
  onTestFinished(async () => {
    for (const file of ['/tmp/menu.json', '/tmp/paused.json', '/tmp/rows.csv']) await rm(file, { force: true });
  });
  const signpost = await startSignpost({ env: { PUBLIC_URL: 'https://sign.example' } });
  await runPage(PAGE, { signpost });
}, 180_000);

test('the policy that the page shows is one', () => {
  const blocks = [...readFileSync(PAGE, 'utf8').matchAll(/```json\n(.*?)```/gs)];
  expect(blocks.length).toBeGreaterThan(0);
  for (const [, json = ''] of blocks) expect(policyFromJson(JSON.parse(json))).toHaveProperty('policy');
});
