import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { replaceFile } from './replace-file.ts';

/**
 * The secret in a file that only its owner may read; created on the first call. The file is written atomically, so that
 * a start that dies here leaves no partial secret behind.
 */
export async function readOrCreateSecret(path: string, create: () => string = randomSecret): Promise<string> {
  const existing = await readSecret(path);
  if (existing !== undefined) return existing;
  const secret = create();
  await writeSecret(path, secret);
  return secret;
}

/** Writes a secret to a file that only its owner may read, replacing its content. */
export function writeSecret(path: string, secret: string): Promise<void> {
  return replaceFile(path, `${secret}\n`, 0o600);
}

/** The secret in the file; undefined if there is no file. */
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
