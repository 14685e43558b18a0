import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

/** Files whose comments cite; generated ones repeat the comments of the proto files. */
const FILES = execFileSync('git', ['ls-files', '*.ts', '*.tsx', 'proto/*.proto', ':!proto/gen'], { encoding: 'utf8' })
  .trim()
  .split('\n')
  .filter((file) => existsSync(file));

/** What follows `Source:`, up to the end of the sentence or of the comment. */
const SOURCE = /\bSource:\s+(.+?)(?:\.(?=\s|$)|\s*(?:\*\/)?$)/g;

/** One or more sections of a page: `docs/contract.md, "Limits" and "Errors"`. */
const SECTIONS = /(docs\/[\w/-]+\.md)((?:(?:,| and) "[^"]+")+)/g;

/** Operations of the REST API: `GET and POST /api/v1/batches`, `GET /api/v1/folders, /api/v1/tags`. */
const OPERATIONS = /^([A-Z]+(?: and [A-Z]+)*) (\/api\/v1\/\S+(?:, \/\S+)*)$/;

/** The beginnings of the names of standards, manuals and articles that anybody can look up. */
const PUBLIC = [
  /^RFC \d/,
  /^ISO\/IEC \d/,
  /^AIP-\d/,
  /^gRPC\b/,
  /^Connect protocol, /,
  /^Protocol Buffers, /,
  /^OpenTelemetry/,
  /^OTLP specification \d/,
  /^Standard Webhooks \d/,
  /^the IANA time zone database, /,
  /^ZIP, APPNOTE/,
  /^libpq's documentation, /,
  /^\w+\(\d\)$/,
  /^Android's `WifiQrCode`/,
  /^Šavrič et al\., /,
];

const comments = FILES.flatMap((file) => commentsOf(readFileSync(file, 'utf8')).map((comment) => ({ file, comment })));
const { paths } = JSON.parse(readFileSync('sdk/openapi.json', 'utf8')) as { paths: Record<string, object> };

test('what comments cite is a section of the page that they name', () => {
  const missing = comments.flatMap(({ file, comment }) =>
    [...comment.matchAll(SECTIONS)]
      .filter(([, page = '', sections = '']) => !namesOf(sections).every((name) => sectionsOf(page).includes(name)))
      .map(([citation]) => `${file}: ${citation}`),
  );
  expect(missing).toEqual([]);
});

test('every source is a section of a page, an operation of the REST API, a file or a public standard', () => {
  const sources = comments.flatMap(({ file, comment }) =>
    [...comment.matchAll(SOURCE)].map(([, source = '']) => ({ file, source })),
  );
  expect(sources.length).toBeGreaterThan(100);
  const unknown = sources.filter(({ source }) => !isPublic(source) && !source.split('; ').every(canBeFound));
  expect(unknown.map(({ file, source }) => `${file}: ${source}`)).toEqual([]);
});

/** Whether a reader can find what a source names. Whether a page has the section is for the other test. */
function canBeFound(source: string): boolean {
  const [, methods, named] = OPERATIONS.exec(source) ?? [];
  if (methods !== undefined && named !== undefined) {
    return named.split(', ').every((path) => methods.split(' and ').every((method) => hasOperation(path, method)));
  }
  const [file] = /^\w[\w/-]+\.proto\b/.exec(source) ?? [];
  if (file !== undefined) return existsSync(file);
  return source.replaceAll(SECTIONS, '') === '';
}

function isPublic(source: string): boolean {
  return PUBLIC.some((name) => name.test(source));
}

function hasOperation(path: string, method: string): boolean {
  return Object.hasOwn(paths[path] ?? {}, method.toLowerCase());
}

function namesOf(sections: string): string[] {
  return [...sections.matchAll(/"([^"]+)"/g)].map(([, name = '']) => name);
}

function sectionsOf(page: string): string[] {
  if (!existsSync(page)) return [];
  return [...readFileSync(page, 'utf8').matchAll(/^##+ (.+)$/gm)].map(([, title = '']) => title);
}

/** The comments of a file, each on one line. Lines that begin with `//` and follow one another are one comment. */
function commentsOf(text: string): string[] {
  const blocks = text.match(/\/\*[\s\S]*?\*\/|(?:^[ \t]*\/\/.*\n?)+|\/\/.*$/gm) ?? [];
  return blocks.map((block) => block.replaceAll(/\s*\n\s*(?:\/\/|\*(?!\/))?\s*/g, ' '));
}
