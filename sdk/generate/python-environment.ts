import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';

/** Why Python programs can't be run here; undefined if they can. */
export function missingPython(): string | undefined {
  const { status } = spawnSync('python3', ['-c', 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))']);
  return status === 0 ? undefined : 'Python 3.10 with venv is missing (apt-get install python3-venv).';
}

/**
 * The path of a program in the virtual environment `.venv` of a folder, which is made first unless it has the packages
 * of the folder's `requirements.txt`.
 */
export function pythonProgram(folder: string, name: string): string {
  const requirements = resolve(folder, 'requirements.txt');
  const environment = resolve(folder, '.venv');
  // A copy of the requirements that the environment was made from.
  const installed = resolve(environment, 'requirements.txt');
  const program = resolve(environment, 'bin', name);
  const wanted = readFileSync(requirements, 'utf8');
  if (existsSync(installed) && readFileSync(installed, 'utf8') === wanted) return program;
  rmSync(environment, { recursive: true, force: true });
  execFileSync('python3', ['-m', 'venv', environment], { stdio: 'inherit' });
  const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--requirement', requirements];
  execFileSync(resolve(environment, 'bin/python'), install, { stdio: 'inherit' });
  writeFileSync(installed, wanted);
  return program;
}
