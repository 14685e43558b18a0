import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

/** All documents but those of the guide, whose links are filled in when it is served. */
const DOCUMENTS = execFileSync('git', ['ls-files', '*.md', ':!gateway/rest/reference'], { encoding: 'utf8' })
  .trim()
  .split('\n')
  .filter((file) => existsSync(file));

test('links between documents lead to files and sections that exist', () => {
  const links = DOCUMENTS.flatMap((file) => linksOf(file).map((link) => ({ file, link })));
  expect(links.length).toBeGreaterThan(300);
  const broken = links.filter(({ file, link }) => !leadsSomewhere(file, link));
  expect(broken.map(({ file, link }) => `${file}: ${link}`)).toEqual([]);
});

/** The targets of the links that have no host. */
function linksOf(file: string): string[] {
  const targets = [...textOf(file).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
  return targets.filter((target) => !/^[a-z]+:/.test(target));
}

function leadsSomewhere(file: string, link: string): boolean {
  const [path = '', section] = link.split('#');
  const target = path === '' ? file : join(dirname(file), decodeURI(path));
  if (!existsSync(target)) return false;
  return section === undefined || (statSync(target).isFile() && anchorsOf(target).includes(section));
}

/** The anchors that GitHub gives to headings. */
function anchorsOf(file: string): string[] {
  const seen = new Map<string, number>();
  return [...textOf(file).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => {
    const text = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const anchor = text.replaceAll(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(' ', '-');
    const before = seen.get(anchor) ?? 0;
    seen.set(anchor, before + 1);
    return before === 0 ? anchor : `${anchor}-${before}`;
  });
}

/** A document without its blocks of code. */
function textOf(file: string): string {
  return readFileSync(file, 'utf8').replaceAll(/^( *)```[\s\S]*?^\1```/gm, '');
}
