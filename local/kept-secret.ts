import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { replaceFile } from './replace-file.ts';

/**
 * The secret kept in a file that only its owner may read; made on the first call. The file appears whole or not at all,
 * so that a start that dies here leaves no half of a secret behind.
 */
export async function keptSecret(path: string, make: () => string = randomSecret): Promise<string> {
  const kept = await readSecret(path);
  if (kept !== undefined) return kept;
  const secret = make();
  await keepSecret(path, secret);
  return secret;
}

/** Keeps a secret in a file that only its owner may read, in place of what the file held. */
export function keepSecret(path: string, secret: string): Promise<void> {
  return replaceFile(path, `${secret}\n`, 0o600);
}

/** What the file keeps, or undefined where there is none. */
export async function readSecret(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** 32 random bytes in base64, which is also the form of `SECRET_KEY`. */
function randomSecret(): string {
  return randomBytes(32).toString('base64');
}
