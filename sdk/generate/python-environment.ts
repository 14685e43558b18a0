import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { SDK } from './document.ts';

const REQUIREMENTS = resolve(SDK, 'python/requirements.txt');
const FOLDER = resolve(SDK, 'python/.venv');
/** A copy of the requirements that the environment was made from. */
const INSTALLED = resolve(FOLDER, 'requirements.txt');

/** Why the Python SDK can't be generated or tested here; undefined if it can. */
export function missingPython(): string | undefined {
  const { status } = spawnSync('python3', ['-c', 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))']);
  return status === 0 ? undefined : 'Python 3.10 with venv is missing (apt-get install python3-venv).';
}

/** The path of a program in the SDK's virtual environment, which is made first if it lacks the pinned packages. */
export function pythonProgram(name: string): string {
  const upToDate = existsSync(INSTALLED) && readFileSync(INSTALLED, 'utf8') === readFileSync(REQUIREMENTS, 'utf8');
  const program = resolve(FOLDER, 'bin', name);
  if (upToDate) return program;
  rmSync(FOLDER, { recursive: true, force: true });
  execFileSync('python3', ['-m', 'venv', FOLDER], { stdio: 'inherit' });
  const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--requirement', REQUIREMENTS];
  execFileSync(resolve(FOLDER, 'bin/python'), install, { stdio: 'inherit' });
  cpSync(REQUIREMENTS, INSTALLED);
  return program;
}
