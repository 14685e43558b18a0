import type { Dirent } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { runTask } from './task.ts';

/** The sources of the dashboard's pages; `npm run build:dashboard` builds them to `dist` in it. */
const APP = resolve(import.meta.dirname, '../dashboard/app');

/** What the pages contain besides. */
const SHARED = ['../common', '../proto/gen'].map((path) => resolve(import.meta.dirname, path));

/**
 * Builds the dashboard's pages, if a source has changed since they were last built, and reports it on the console.
 * After a failure the dashboard serves the previous pages, or a page that says that there are none.
 */
export async function buildApp(dataDir: string, signal: AbortSignal): Promise<void> {
  const log = join(dataDir, 'logs/dashboard-build.log');
  try {
    if (!(await isAppOutdated())) return;
    console.log('The pages of the dashboard are being built.');
    const command = ['npm', 'run', 'build:dashboard'] as const;
    if ((await runTask({ command, env: process.env, log, signal })) || signal.aborted) return;
    console.error(`The pages of the dashboard could not be built; see ${relative(process.cwd(), log)}.`);
  } catch (error) {
    console.error('The pages of the dashboard could not be built.', error);
  }
}

/** Whether the pages in `dashboard/app/dist` are missing or older than a source. */
export function isAppOutdated(): Promise<boolean> {
  return isOutdated(APP, SHARED);
}

/**
 * Whether a source of the app in `folder`, or a `shared` one, is newer than the build; false if the folder has no
 * sources.
 */
export async function isOutdated(folder: string, shared: readonly string[] = []): Promise<boolean> {
  const newest = await newestIn(folder);
  if (newest === undefined) return false;
  const others = await Promise.all(shared.map(newestIn));
  const built = await changedAt(join(folder, 'dist/index.html'));
  return built === undefined || [newest, ...others].some((time) => time !== undefined && time > built);
}

/** When the newest source in a folder was changed, in ms since 1970; undefined if there is none. */
async function newestIn(folder: string): Promise<number | undefined> {
  const entries = await existing(readdir(folder, { recursive: true, withFileTypes: true }));
  const times = await Promise.all((entries ?? []).filter(isSource(folder)).map((file) => changedAt(pathOf(file))));
  return times.reduce((newest, time) => (newest === undefined || (time ?? 0) > newest ? time : newest), undefined);
}

function isSource(folder: string): (file: Dirent) => boolean {
  const build = join(folder, 'dist/');
  return (file) => file.isFile() && !pathOf(file).startsWith(build);
}

function pathOf({ parentPath, name }: Dirent): string {
  return join(parentPath, name);
}

async function changedAt(path: string): Promise<number | undefined> {
  return (await existing(stat(path)))?.mtimeMs;
}

/** What was read; undefined if there is no such file or folder. */
async function existing<Value>(reading: Promise<Value>): Promise<Value | undefined> {
  try {
    return await reading;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
