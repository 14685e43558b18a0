import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterFile } from './after-file.ts';

const run = promisify(execFile);
const openssl = (args: readonly string[]) => run('openssl', args);

/** A certificate and its key: PEM files and their contents. */
export interface Certificate {
  readonly certFile: string;
  readonly keyFile: string;
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** A CA whose certificates are valid for two days; its files are deleted after the calling file's tests. */
export interface CertificateAuthority extends Certificate {
  /** Issues a certificate for this name, `localhost` and 127.0.0.1; `days` below zero: already expired. */
  issue(name: string, days?: number): Promise<Certificate>;
}

/** Creates a CA that nothing trusts yet. */
export async function newAuthority(): Promise<CertificateAuthority> {
  const folder = await mkdtemp(join(tmpdir(), 'signpost-certificates-'));
  afterFile(() => rm(folder, { recursive: true, force: true }));
  const at = (name: string) => join(folder, name);
  let made = 0;

  async function keyPair(name: string): Promise<{ keyFile: string; request: string; certFile: string }> {
    const files = { keyFile: at(`${made}.key`), request: at(`${made}.csr`), certFile: at(`${made}.pem`) };
    made += 1;
    await openssl(['genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256', '-out', files.keyFile]);
    await openssl(['req', '-new', '-key', files.keyFile, '-subj', `/CN=${name}`, '-out', files.request]);
    return files;
  }

  async function sign(name: string, extensions: string, signer: readonly string[], days: number): Promise<Certificate> {
    const { keyFile, request, certFile } = await keyPair(name);
    const extensionFile = at(`${made}.ext`);
    await writeFile(extensionFile, extensions);
    const by = signer.length === 0 ? ['-signkey', keyFile] : signer;
    const validity = ['-days', String(days), '-set_serial', String(made)];
    await openssl(['x509', '-req', '-in', request, ...by, ...validity, '-extfile', extensionFile, '-out', certFile]);
    return { keyFile, certFile, key: await readFile(keyFile), cert: await readFile(certFile) };
  }

  const own = await sign('Test authority', 'basicConstraints=critical,CA:TRUE', [], 2);
  return {
    ...own,
    issue: (name, days = 2) =>
      sign(name, 'subjectAltName=DNS:localhost,IP:127.0.0.1', ['-CA', own.certFile, '-CAkey', own.keyFile], days),
  };
}
