import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const run = promisify(execFile);

async function script(shell: string): Promise<string> {
  return (await run(process.execPath, ['cli/main.ts', 'completion', shell])).stdout;
}

/** Bash's completions for the last word of a line. */
async function offered(line: string): Promise<string[]> {
  const words = line.split(' ');
  const program = `${await script('bash')}
    COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}
    _signpost; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return (await run('bash', ['-c', program])).stdout.split('\n').filter(Boolean);
}

test.each([
  ['signpost a', ['account']],
  [
    'signpost code ',
    [
      ...['create', 'update', 'list', 'show', 'pause', 'resume', 'delete', 'restore', 'image', 'analytics'],
      ...['create-static', 'create-landing', 'update-landing', '--help'],
    ],
  ],
  ['signpost account c', ['create', 'close']],
  ['signpost account create --p', ['--plan']],
  ['signpost code image --format ', ['png', 'svg']],
  ['signpost code update --no', ['--no-name', '--no-folder', '--no-tag']],
  ['signpost account create --plan ', ['free', 'business', 'scale', 'enterprise']],
  ['signpost account create --plan s', ['scale']],
  ['signpost account create --plan scale --n', ['--name']],
  ['signpost completion ', ['bash', 'zsh', 'fish']],
])('bash completes “%s”', async (line, expected) => {
  expect(await offered(line)).toEqual(expected);
});

test('the lines that the help gives for ~/.bashrc work in every folder', async () => {
  const { stdout } = await run(process.execPath, ['cli/main.ts', 'completion', '--help']);
  const lines = stdout.split('\n').filter((line) => /^ {2}(signpost\(\)|source) /.test(line));
  expect(lines).toHaveLength(2);
  const { DATA_DIR: _, SERVICE_TOKEN: __, ...env } = process.env;
  const shell = (command: string, more: Record<string, string> = {}) =>
    run('bash', ['-c', `${lines.join('\n')}\n${command}`], { cwd: '/', env: { ...env, CORE_PORT: '1', ...more } });
  expect((await shell('complete -p signpost')).stdout).toContain('_signpost signpost');
  expect((await shell('signpost account list 2>&1; true', { DATA_DIR: '/nowhere' })).stdout).toContain('/nowhere/');
  const { stdout: failed } = await shell('signpost account list 2>&1; true');
  // With the token of a local run in this folder, or without one.
  expect(failed).toMatch(new RegExp(`no ${process.cwd()}/\\.signpost/service-token|^The core does not respond`));
});

test('zsh uses bash’s completion, fish has its own with descriptions', async () => {
  expect(await script('zsh')).toMatch(/^autoload -U \+X bashcompinit && bashcompinit\n_signpost\(\) \{/);
  const fish = await script('fish');
  expect(fish).toContain(`-l plan -d 'the plan of the account' -x -a 'free business scale enterprise'`);
  for (const line of fish.trimEnd().split('\n')) expect(line).toMatch(/^complete -c signpost -n ('[^']*'|\S+) -/);
});
