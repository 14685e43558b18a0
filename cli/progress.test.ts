import { execFile } from 'node:child_process';
import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';

/** Runs a script with what `withProgress` is, in a terminal (`script` of util-linux) or not; returns both streams. */
function output(script: string, terminal = true): Promise<string> {
  const program = `import { setTimeout } from 'node:timers/promises';
    import { withProgress } from './cli/progress.ts'; ${script}`;
  const command = `'${process.execPath}' --input-type=module -e "$PROGRAM"`;
  const [file, args] = terminal ? ['script', ['-qec', command, '/dev/null']] : ['sh', ['-c', `${command} 2>&1`]];
  const env = { ...process.env, PROGRAM: program, TERM: 'xterm-256color' };
  return new Promise((resolve) => {
    execFile(file as string, args as string[], { env }, (_, stdout) => resolve(stdout));
  });
}

const work = (json: boolean, total: string) => `
  const result = await withProgress({ json: ${json}, what: 'Exporting images' }, async (update) => {
    for (const done of [1, 2, 3]) {
      update(done${total});
      await setTimeout(600);
    }
    return 'saved';
  });
  console.log(result);`;

test.runIf(process.platform === 'linux')(
  'a terminal shows how far an operation is, and then only its result',
  async () => {
    const printed = await output(work(false, ', 3'));
    expect(printed).toMatch(/Exporting images [█░]+ [123] of 3/);
    const lines = stripVTControlCharacters(printed)
      .trimEnd()
      .split(/[\r\n]+/);
    expect(lines.at(-1)).toMatch(/saved$/);
  },
);

test.runIf(process.platform === 'linux')('without a total it shows how many items there were', async () => {
  expect(await output(work(false, ''))).toMatch(/Exporting images … 3/);
});

test('nothing is shown with --json, without a terminal, or for a short operation', async () => {
  expect(await output(work(false, ', 3'), false)).toBe('saved\n');
  if (process.platform !== 'linux') return;
  expect(await output(work(true, ', 3'))).toBe('saved\r\n');
  const short = `console.log(await withProgress({ json: false, what: 'Reading' }, async () => 'read'));`;
  expect(await output(short)).toBe('read\r\n');
});
