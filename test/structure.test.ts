import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

/** Modules that every module of a domain may import. */
const FOR_ALL = ['db', 'calls', 'access', 'events', 'jobs'];

/** What these import themselves, as CONTRIBUTING.md says above that list. */
const OF_ITS_OWN = {
  db: [],
  calls: [],
  access: ['db', 'calls'],
  events: ['db', 'calls'],
  jobs: ['db', 'calls'],
  rpc: ['access', 'calls'],
};

test('modules of the core import one another only as CONTRIBUTING.md says', () => {
  const allowed = new Map<string, readonly string[]>([
    ...[...betweenDomains()].map(([from, to]) => [from, [...FOR_ALL, ...to]] as const),
    ...Object.entries(OF_ITS_OWN),
  ]);
  const found = filesOf('src').flatMap(importsOf);
  const refused = found.filter(({ from, to }) => !(allowed.get(from) ?? FOR_ALL).includes(to));
  expect(refused.map(({ file, to }) => `${file} imports ${to}`)).toEqual([]);
  // What is allowed is needed.
  const used = new Set(found.map(({ from, to }) => `${from} → ${to}`));
  const unused = [...betweenDomains()].flatMap(([from, to]) => to.map((each) => `${from} → ${each}`));
  expect(unused.filter((edge) => !used.has(edge))).toEqual([]);
});

/** The list "of one another only" in CONTRIBUTING.md: the modules that a module of the domain imports. */
function betweenDomains(): Map<string, string[]> {
  const lines = readFileSync('CONTRIBUTING.md', 'utf8').matchAll(/^ {2}- `(\w+)` → (.+)$/gm);
  return new Map([...lines].map(([, from = '', to = '']) => [from, [...to.matchAll(/\w+/g)].map(([name]) => name)]));
}

test('modules of common/ import one another only in the order of CONTRIBUTING.md', () => {
  const [, list = ''] =
    /The modules of `common\/` import only .+?:(.+?)\n\n/s.exec(readFileSync('CONTRIBUTING.md', 'utf8')) ?? [];
  const order = [...list.matchAll(/`(\w+)`/g)].map(([, name]) => name);
  const files = filesOf('common');
  expect(order.toSorted()).toEqual([...new Set(files.map((file) => file.split('/')[1]))].toSorted());
  const refused = files.flatMap(importsOf).filter(({ from, to }) => order.indexOf(to) < order.indexOf(from));
  expect(refused.map(({ file, to }) => `${file} imports ${to}`)).toEqual([]);
});

/** The files of a folder's modules, at any depth. */
function filesOf(folder: string): string[] {
  const files = execFileSync('git', ['ls-files', folder], { encoding: 'utf8' });
  return files.split('\n').filter((file) => /^\w+\/\w+\/.+(?<!\.(?:test|fixture))\.ts$/.test(file));
}

/** Imports of other modules of the same folder, in a file of a module. */
function importsOf(file: string): { file: string; from: string; to: string }[] {
  const [folder, from = ''] = file.split('/');
  return [...readFileSync(file, 'utf8').matchAll(/\b(?:from|import)\s*\(?'(\.[^']+)'/g)].flatMap(([, path = '']) => {
    const [top, to = '', ...rest] = join(dirname(file), path).split('/');
    return top === folder && rest.length > 0 && to !== from ? [{ file, from, to }] : [];
  });
}

test('comments are no wider than code', () => {
  const files = execFileSync('git', ['ls-files', '*.ts', '*.tsx', ':!*/gen/*'], { encoding: 'utf8' });
  const isWide = (line: string) => line.length > 120 && /^ *(\/\/(?! biome-ignore)|\/?\*)/.test(line);
  const wide = files
    .trim()
    .split('\n')
    .filter((file) => readFileSync(file, 'utf8').split('\n').some(isWide));
  expect(wide).toEqual([]);
});
