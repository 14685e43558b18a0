import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import {
  type CallExpression,
  type Expression,
  isCallExpression,
  isNoSubstitutionTemplateLiteral,
  isPropertyAccessExpression,
  isStringLiteral,
  isTemplateExpression,
  type Node,
} from 'typescript/unstable/ast';
import { API } from 'typescript/unstable/sync';
import { expect, test } from 'vitest';

const LEVELS: Readonly<Record<string, number>> = { warn: 40, error: 50, fatal: 60 };

/** Passes on what a library says. */
const WITHOUT_LITERALS = ['src/jobs/worker.ts'];

/** Log messages as `level message`; … stands for what varies. */
function messagesInCode(): string[] {
  const patterns = ['common', 'src', 'gateway', 'dashboard/server', 'local', 'cli'].map((program) => `${program}/*.ts`);
  const files = execFileSync('git', ['ls-files', ...patterns], { encoding: 'utf8' })
    .trim()
    .split('\n');
  const api = new API({ cwd: process.cwd() });
  try {
    const [project] = api.updateSnapshot({ openProjects: ['tsconfig.json'] }).getProjects();
    return files
      .filter((file) => !/\.(test|fixture)\.ts$/.test(file))
      .flatMap((file) => {
        const source = project?.program.getSourceFile(file);
        if (!source) throw new Error(`${file} belongs to no program.`);
        return logCalls(source).flatMap(({ level, message }) => {
          const text = textOf(message);
          if (text === undefined && !WITHOUT_LITERALS.includes(file)) {
            throw new Error(`${file} logs ${message.getText()}, which no page can list.`);
          }
          return text === undefined ? [] : `${level} ${text}`;
        });
      });
  } finally {
    api.close();
  }
}

/** The calls of loggers within a node: `logger.warn(…)`, or of what `openLogger` returns. */
function logCalls(node: Node): { level: number; message: Expression }[] {
  const found = isCallExpression(node) ? logCall(node) : [];
  node.forEachChild((child) => {
    found.push(...logCalls(child));
  });
  return found;
}

function logCall({ expression, arguments: values }: CallExpression): { level: number; message: Expression }[] {
  if (!isPropertyAccessExpression(expression)) return [];
  const level = LEVELS[expression.name.text];
  const message = values.at(-1);
  const isLogger = /^((this\.#)?logger$|openLogger\()/.test(expression.expression.getText());
  return isLogger && level !== undefined && message ? [{ level, message }] : [];
}

function textOf(message: Expression): string | undefined {
  if (isStringLiteral(message) || isNoSubstitutionTemplateLiteral(message)) return message.text;
  if (!isTemplateExpression(message)) return undefined;
  return [message.head.text, ...message.templateSpans.map(({ literal }) => literal.text)].join('…');
}

function messagesInRunbook(): string[] {
  const [, logs = ''] = /^## Logs\n([\s\S]*)/m.exec(readFileSync('docs/operating/health-and-logs.md', 'utf8')) ?? [];
  return [...logs.matchAll(/^\| (\d+) +\| `([^`]+)` +\|/gm)].map(([, level, message]) => `${level} ${message}`);
}

test('the runbook lists the messages that processes log at level 40 and above, and no others', () => {
  const [listed, logged] = [messagesInRunbook(), messagesInCode()];
  expect(listed).toEqual([...new Set(listed)]);
  expect(listed.toSorted()).toEqual([...new Set(logged)].toSorted());
});
