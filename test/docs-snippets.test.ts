import { execFile, spawnSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { startSignpost } from './harness/processes.ts';

/**
 * Every block of commands or code in a page is run by a test: by this one where the comment above it says `run`, by
 * another that the comment names, or by none, for the reason that it gives.
 */

/** Blocks in these languages show something, and cannot be run. */
const SHOWN = ['', 'text', 'mermaid'];

/** Pages all of whose snippets are run by another test. */
const COVERED_ELSEWHERE: Readonly<Record<string, string>> = {
  'docs/command-line.md': 'test/command-line.test.ts',
};

/** With `CI=true` its calls fail without it. */
const HAS_GRPCURL = process.env.CI === 'true' || spawnSync('grpcurl', ['-version']).status === 0;

interface Snippet {
  readonly page: string;
  readonly line: number;
  readonly language: string;
  readonly code: string;
  /** The comment in the line above the block, if any, or the one before an empty line. */
  readonly comment: string | undefined;
}

const PAGES = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', ...globSync('docs/**/*.md').sort()].filter(
  (page) => !(page in COVERED_ELSEWHERE),
);

function snippetsOf(page: string): Snippet[] {
  const text = readFileSync(page, 'utf8');
  return [...text.matchAll(/^( *)```(\S*)[^\n]*\n(.*?)^\1```$/gms)].map((match) => {
    const before = text.slice(0, match.index);
    const [, comment] = /<!-- ([^\n]*?) -->\s*$/.exec(before) ?? [];
    return { page, line: before.split('\n').length, language: match[2] ?? '', code: match[3] ?? '', comment };
  });
}

const snippets = PAGES.flatMap(snippetsOf).filter(({ language }) => !SHOWN.includes(language));

/** Why nobody knows that a snippet works; undefined if somebody does. */
function problem({ page, comment }: Snippet): string | undefined {
  if (comment === undefined) return 'has no comment: `run`, `run by test/….test.ts`, or `not executed: <reason>`';
  if (comment === 'run' || /^not executed: .{10,}/.test(comment)) return undefined;
  const [, file] = /^run by (\S+\.test\.ts)$/.exec(comment) ?? [];
  if (file === undefined) return `has the comment \`${comment}\`, which says nothing about running it`;
  if (!existsSync(file)) return `is run by ${file}, which does not exist`;
  return readFileSync(file, 'utf8').includes(page.split('/').at(-1) ?? page) ? undefined : `is not read by ${file}`;
}

test('every snippet of the pages is run by a test, or says why it is not', () => {
  expect(snippets.length).toBeGreaterThan(20);
  const problems = snippets.flatMap((snippet) => {
    const found = problem(snippet);
    return found === undefined ? [] : [`${snippet.page}:${snippet.line} ${found}`];
  });
  expect(problems).toEqual([]);
  for (const [page, file] of Object.entries(COVERED_ELSEWHERE)) {
    expect(readFileSync(file, 'utf8'), file).toContain(page.split('/').at(-1));
  }
});

const run = promisify(execFile);

test('the snippets that are marked `run` work in a running Signpost, one after another on each page', {
  timeout: 180_000,
}, async ({ skip }) => {
  const signpost = await startSignpost();
  const { apiKey, accountId } = await signpost.createAccount();
  const folder = await mkdtemp(join(tmpdir(), 'signpost-snippets-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const core = `127.0.0.1:${signpost.corePort}`;
  const env = { ...process.env, SERVICE_TOKEN: signpost.serviceToken, CORE_PORT: String(signpost.corePort) };

  /**
   * Runs commands as they stand there, but with this Signpost's addresses, and with ids in place of those cut short.
   */
  const runCommands = async (commands: string, printed: string): Promise<string> => {
    const latest = (pattern: RegExp) => [...printed.matchAll(pattern)].at(-1)?.[1] ?? 'none';
    const adapted = commands
      .replaceAll('http://localhost:8080', signpost.url)
      .replaceAll(/\b(localhost|127\.0\.0\.1):8081\b/g, core)
      .replaceAll(/\b(localhost|127\.0\.0\.1):50051\b/g, `127.0.0.1:${signpost.grpcPort}`)
      .replaceAll('$(cat .signpost/service-token)', signpost.serviceToken)
      .replaceAll('sk_live_…', apiKey)
      .replaceAll('acct_…', accountId)
      .replaceAll('qr_…', latest(/\b(qr_\w{26})/g))
      .replaceAll('hook_…', latest(/\b(hook_\w{26})/g))
      .replaceAll('Ab3dE9k', latest(/"short_code":"(\w{7})"/g))
      .replaceAll(/\bcurl (?=-|http)/g, 'curl --fail-with-body ')
      .replaceAll('npm run signpost --', `node ${join(process.cwd(), 'cli/main.ts')}`)
      .replaceAll(/^grpcurl /gm, HAS_GRPCURL ? 'grpcurl ' : ': ');
    const preamble = `KEY=${apiKey}\n`;
    const options = { cwd: folder, env, timeout: 60_000 };
    return (await run('bash', ['-euo', 'pipefail', '-c', preamble + adapted], options)).stdout;
  };

  /** Runs a statement as the owner of the database, and undoes it: roles and their rights belong to all tests. */
  const runSql = async (statement: string): Promise<string> => {
    const client = new pg.Client({ connectionString: signpost.databaseUrl });
    await client.connect();
    try {
      await client.query('begin');
      const { rowCount } = await client.query(`select 1 from pg_roles where rolname = 'signpost'`);
      if (rowCount === 0) await client.query('create role signpost');
      await client.query(statement);
      await client.query('rollback');
    } finally {
      await client.end();
    }
    return '';
  };

  // A page may name a code without creating one.
  const known = await runCommands(
    `curl -s http://localhost:8080/api/v1/qr-codes -H "Authorization: Bearer $KEY" -d '{"target_url": "https://example.com/"}'`,
    '',
  );
  for (const page of PAGES) {
    let printed = known;
    for (const { code, line, language } of snippetsOf(page).filter(({ comment }) => comment === 'run')) {
      // Commands after an empty line may name what those before it created.
      for (const part of language === 'sql' ? [code] : code.split(/^$/m)) {
        const output = language === 'sql' ? runSql(part) : runCommands(part, printed);
        printed += await output.catch((cause: unknown) => {
          throw new Error(`${page}:${line} does not work: ${part}`, { cause });
        });
      }
    }
  }
  skip(!HAS_GRPCURL, 'grpcurl is not installed: all commands but its calls were run');
});
