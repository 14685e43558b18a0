import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

test('what comments cite is a section of the page that they name', () => {
  const files = execFileSync('git', ['ls-files', '*.ts', '*.proto'], { encoding: 'utf8' }).trim().split('\n');
  const missing = files.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/(docs\/[\w-]+\.md), "([^"\n]+)"/g)]
      .filter(([, page = '', section]) => !sectionsOf(page).includes(section ?? ''))
      .map(([citation]) => `${file}: ${citation}`),
  );
  expect(missing).toEqual([]);
});

function sectionsOf(page: string): string[] {
  return [...readFileSync(page, 'utf8').matchAll(/^##+ (.+)$/gm)].map(([, title = '']) => title);
}
