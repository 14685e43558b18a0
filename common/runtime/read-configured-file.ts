import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { OperatorError } from './operator-error.ts';

/**
 * The value of a variable, or else the content of the file that the variable `NAME_FILE` names, without line breaks at
 * its end; undefined if neither is set. Throws an `OperatorError` if both are, or if the file can't be read.
 */
export function configured(env: NodeJS.ProcessEnv, name: string): string | undefined {
  const [value, path] = [env[name], env[`${name}_FILE`]];
  if (!path) return value || undefined;
  if (value) throw new OperatorError(`${name} and ${name}_FILE must not both be set.`);
  return readConfiguredFile(`${name}_FILE`, path).toString().trimEnd() || undefined;
}

/** Reads the file that a variable names. Throws an `OperatorError` that names both if it can't be read. */
export function readConfiguredFile(variable: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new OperatorError(`${variable} ${path} can't be read (${(error as NodeJS.ErrnoException).code}).`, {
      cause: error,
    });
  }
}

/** The same for the certificates of a CA. Node would ignore a file without any, and then accept no certificate. */
export function readConfiguredCa(variable: string, path: string): Buffer {
  const content = readConfiguredFile(variable, path);
  if (!isPemCertificate(content)) throw new OperatorError(`${variable} ${path} must be a PEM file of certificates.`);
  return content;
}

function isPemCertificate(content: Buffer): boolean {
  try {
    return content.includes('-----BEGIN ') && new X509Certificate(content).raw.length > 0;
  } catch {
    return false;
  }
}
