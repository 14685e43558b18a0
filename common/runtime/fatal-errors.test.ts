import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

/** Runs a program that ends with an error; returns how it ended. */
function runWith(error: string, options: string) {
  const program = `
    const { reportFatalError } = await import('./common/runtime/fatal-errors.ts');
    const { OperatorError } = await import('./common/runtime/operator-error.ts');
    reportFatalError(${error}, ${options});`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

test.each([
  ["new OperatorError('PORT must be a port.')", "{ logAs: 'core' }", 'PORT must be a port.\n'],
  [
    "new Error('refused')",
    "{ logAs: 'core', sentenceOf: ({ message }) => 'Postgres: ' + message }",
    'Postgres: refused\n',
  ],
])('what the operator can repair is one sentence on standard error: %s', (error, options, stderr) => {
  expect(runWith(error, options)).toEqual({ status: 1, stdout: '', stderr });
});

test('an unexpected error is the last line of the log, or printed by a program without a log', () => {
  const logged = runWith("new Error('unforeseen')", "{ logAs: 'core', sentenceOf: () => undefined }");
  expect(logged).toMatchObject({ status: 1, stderr: '' });
  expect(JSON.parse(logged.stdout)).toMatchObject({
    level: 60,
    process: 'core',
    msg: 'the process exits after an unexpected error',
    err: { message: 'unforeseen' },
  });
  expect(runWith("new Error('unforeseen')", '{}')).toMatchObject({
    status: 1,
    stdout: '',
    stderr: expect.stringMatching(/^Error: unforeseen\n {4}at /),
  });
});
