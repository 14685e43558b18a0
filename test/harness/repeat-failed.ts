/**
 * Runs all tests: `npm run test:ci`. Each of `npm test` and `npm run test:long` that fails is repeated five times with
 * the same seed. It counts as passed only if all five runs pass, and is listed above the last line even then: a test
 * that fails now and then shows a race, in the test or in what it tests. Other failures, of the containers or outside
 * any test, are not repeated; they are listed there too.
 *
 * With `CI=true` those of `npm run test:containers` run beside those of `npm test`: both often wait, and no fault is
 * timed. Skipped tests are listed then, too: nothing that they need should be missing.
 */
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lastLine, type RunResult, type TestId } from './last-line-reporter.ts';

const RUNS = 5;
/** With more failures than this, the code is broken rather than a test unreliable. */
const MOST_REPEATED = 10;
/** Files whose tests need those before them; they are repeated whole. */
const REPEATED_WHOLE = [
  'dashboard/app/routes/batches/batches.long.test.ts',
  'dashboard/app/routes/codes/codes.long.test.ts',
  'dashboard/app/routes/labels/labels.long.test.ts',
  'dashboard/app/routes/overview/overview.long.test.ts',
  'dashboard/app/routes/team/team.long.test.ts',
  'dashboard/app/routes/webhooks/webhooks.long.test.ts',
  'test/hostile/privacy.test.ts',
  'test/sdk/contract.test.ts',
];

const folder = mkdtempSync(join(tmpdir(), 'signpost-test-result-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
process.env.TEST_SEED ??= String(randomInt(2 ** 31));

const [short, long] = ['vitest.config.ts', 'vitest.long.config.ts'];
const journey = process.env.CI === 'true' ? containers() : undefined;
const runs = [{ config: short, ...(await vitest('--config', short)) }];
const inContainers = await journey;
runs.push({ config: long, ...(await vitest('--config', long)) });
const failedTests = runs.flatMap(({ config, failedTests }) => failedTests.map((test) => ({ config, ...test })));
const results = [...runs, ...(inContainers ? [inContainers] : [])];
const count = {
  passed: sum(results.map(({ passed }) => passed)),
  failed: sum(results.map(({ failed }) => failed)),
  skipped: sum(results.map(({ skipped }) => skipped)),
};
const skippedTests = process.env.CI === 'true' ? runs.flatMap(({ skippedTests }) => skippedTests) : [];
const notes = results.flatMap(({ errors }) => errors.map((error) => `failed outside any test: ${error}`));
notes.push(...skippedTests.map((test) => `skipped: ${nameOf(test)}`));
notes.push(...(inContainers?.failedTests ?? []).map((test) => `failed: ${nameOf(test)}`));
if (failedTests.length <= MOST_REPEATED) {
  for (const [test, passed] of [...(await repeat(short)), ...(await repeat(long))]) {
    notes.push(`failed, then passed ${passed} of ${RUNS} times: ${nameOf(test)}`);
    if (passed < RUNS) continue;
    count.failed--;
    if (test.name !== undefined) count.passed++;
  }
} else {
  notes.push(...failedTests.map((test) => `failed: ${nameOf(test)}`));
}
if (inContainers !== undefined && inContainers.failed > 0)
  console.log(`\n== Containers, failed\n${inContainers.output}`);
for (const note of notes) console.log(note);
console.log(`seed: TEST_SEED=${process.env.TEST_SEED}\n${lastLine(count)}`);
process.exitCode = count.failed === 0 ? 0 : 1;

/**
 * How often each failed test of a configuration passes in five runs, until it fails. A run repeats all of them: it
 * starts the shared services once, and those of several files run at a time.
 */
async function repeat(config: string): Promise<Map<TestId, number>> {
  const tests = failedTests.filter((test) => test.config === config);
  const passes = new Map(tests.map((test) => [test, 0]));
  for (let run = 0; run < RUNS; run++) {
    const left = tests.filter((test) => passes.get(test) === run);
    if (left.length === 0) break;
    const files = [...new Set(left.map(({ file }) => file))];
    // Whole files are repeated if one of them failed as a whole.
    const names = left.map(({ file, name }) =>
      name === undefined || REPEATED_WHOLE.includes(file) ? '' : `^${escaped(name)}$`,
    );
    const result = await vitest('--config', config, ...files, '--testNamePattern', names.join('|'));
    for (const test of left) if (hasPassed(test, result)) passes.set(test, run + 1);
  }
  return passes;
}

/** Whether a test has run and passed, or a whole file has, in a run without failures outside of tests. */
function hasPassed({ file, name }: TestId, { passedTests, failedTests, errors }: RunResult): boolean {
  const isAmong = (tests: readonly TestId[]) =>
    tests.some((test) => test.file === file && (name === undefined || test.name === undefined || test.name === name));
  return errors.length === 0 && isAmong(passedTests) && !isAmong(failedTests);
}

/** Runs tests. */
async function vitest(...options: string[]): Promise<RunResult> {
  const path = join(folder, 'result.json');
  rmSync(path, { force: true });
  const run = spawn('vitest', ['run', ...options], { stdio: 'inherit', env: { ...process.env, TEST_RESULT: path } });
  const [code] = await once(run, 'close');
  return resultOf(code, path, `vitest run ${options.join(' ')}`);
}

/**
 * Runs the journey through the containers, and prints its output once it is over; if it failed, again above the notes.
 */
async function containers(): Promise<RunResult & { readonly output: string }> {
  const path = join(folder, 'containers.json');
  const run = spawn('bash', ['test/containers/run.sh'], { env: { ...process.env, TEST_RESULT: path } });
  let output = '';
  for (const stream of [run.stdout, run.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
  const [code] = await once(run, 'close');
  console.log(`\n== Containers\n${output}`);
  return { ...resultOf(code, path, 'test/containers/run.sh'), output };
}

/**
 * The result of a run of `command`. One failure stands for a run without a result, or whose exit code alone shows one.
 */
function resultOf(code: number | null, path: string, command: string): RunResult {
  const result = readResult(path);
  if (result !== undefined && (code === 0 || result.failed > 0)) return result;
  const nothing = { passed: 0, skipped: 0, passedTests: [], failedTests: [], skippedTests: [] };
  return { ...nothing, ...result, failed: 1, errors: [`${command} exited with ${code}`] };
}

function readResult(path: string): RunResult | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}

function nameOf({ file, name }: TestId): string {
  return name === undefined ? file : `${file} > ${name}`;
}

function escaped(name: string): string {
  return name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
