import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);
/** Long enough for a first build of the image beside other tests, in ms. */
const TIMEOUT_MS = 460_000;

/**
 * Runs commands in the copy of the project, as somebody would in a terminal, and resolves with their standard output.
 */
export async function sh(commands: string): Promise<string> {
  const { COMPOSE_FILE, COMPOSE_PROJECT_NAME, ...env } = process.env;
  const cwd = process.env.CONTAINERS_CHECKOUT ?? '';
  const options = { cwd, env, timeout: TIMEOUT_MS, maxBuffer: 64 * 1024 * 1024 };
  return (await run('bash', ['-euo', 'pipefail', '-c', commands], options)).stdout;
}

/** `docker compose` with options before its command, such as `-f`. */
export function composeIn(options: readonly string[]): (...words: readonly string[]) => Promise<string> {
  return (...words) => {
    const quoted = [...options, ...words].map((word) => `'${word.replaceAll("'", `'\\''`)}'`);
    return sh(`docker compose ${quoted.join(' ')} </dev/null`);
  };
}

/** `docker compose` with the file in the root of the project. */
export const compose = composeIn([]);

/** The last id with this prefix in a text, or its abbreviation if there is none. */
export function latestId(text: string, prefix: string): string {
  return [...text.matchAll(new RegExp(`\\b${prefix}_\\w{26}`, 'g'))].at(-1)?.[0] ?? `${prefix}_…`;
}

/** Prints how long something took. */
export async function seconds<Result>(name: string, measured: () => Promise<Result>): Promise<Result> {
  const start = performance.now();
  const result = await measured();
  console.log(`${name}: ${((performance.now() - start) / 1000).toFixed(1)} s`);
  return result;
}
