/**
 * Runs all tests, those of `npm test` and of `npm run test:long`, and repeats each that fails five times with the same
 * seed: `npm run test:ci`. It counts as passed only if all five runs pass, and is listed above the last line even then:
 * a test that fails now and then shows a race, in the test or in what it tests.
 */
import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type FailedTest, lastLine, type RunResult } from './last-line-reporter.ts';

const RUNS = 5;
/** With more failures than this, the code is broken rather than a test unreliable. */
const MOST_REPEATED = 10;

const folder = mkdtempSync(join(tmpdir(), 'signpost-test-result-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
process.env.TEST_SEED ??= String(randomInt(2 ** 31));

const CONFIGS = ['vitest.config.ts', 'vitest.long.config.ts'];
const runs = CONFIGS.map((config) => ({ config, ...vitest('--config', config) }));
const failedTests = runs.flatMap(({ config, failedTests }) => failedTests.map((test) => ({ config, ...test })));
const count = {
  passed: sum(runs.map(({ passed }) => passed)),
  failed: sum(runs.map(({ failed }) => failed)),
  skipped: sum(runs.map(({ skipped }) => skipped)),
};
const notes: string[] = [];
if (failedTests.length <= MOST_REPEATED) {
  for (const test of failedTests) {
    const passed = repeat(test);
    notes.push(`failed, then passed ${passed} of ${RUNS} times: ${test.file}${test.name ? ` > ${test.name}` : ''}`);
    if (passed < RUNS) continue;
    count.failed--;
    if (test.name !== undefined) count.passed++;
  }
}
for (const note of notes) console.log(note);
console.log(`seed: TEST_SEED=${process.env.TEST_SEED}\n${lastLine(count)}`);
process.exitCode = count.failed === 0 ? 0 : 1;

/** How often a test passes in five runs; it stops at the first failure. */
function repeat({ config, file, name }: FailedTest & { readonly config: string }): number {
  const only = name === undefined ? [] : ['--testNamePattern', `^${escaped(name)}$`];
  for (let run = 0; run < RUNS; run++) {
    const { passed, failed } = vitest('--config', config, file, ...only);
    if (failed > 0 || passed === 0) return run;
  }
  return RUNS;
}

/** Runs tests; one failure stands for a run that ended without a result. */
function vitest(...options: string[]): RunResult {
  const path = join(folder, 'result.json');
  rmSync(path, { force: true });
  const env = { ...process.env, TEST_RESULT: path };
  const { status } = spawnSync('vitest', ['run', ...options], { stdio: 'inherit', env });
  const result = readResult(path);
  return status === 0 || result.failed > 0 ? result : { ...result, failed: 1 };
}

function readResult(path: string): RunResult {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return { passed: 0, failed: 1, skipped: 0, failedTests: [] };
  }
}

function escaped(name: string): string {
  return name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
