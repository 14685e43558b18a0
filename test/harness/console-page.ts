import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { expect } from 'vitest';
import type { Dns } from './dns.ts';
import type { Signpost } from './processes.ts';

/** What is different in every run, and how the page shows it. */
const VOLATILE: readonly (readonly [RegExp, string | ((token: string) => string)])[] = [
  [/\b(?:acct|qr|batch|folder|tag|domain|hook|dlv|mbr|evt|change)_[0-9a-z]{26}/g, (id) => `${id.split('_')[0]}_…`],
  [/\bsk_live_\w{43}/g, 'sk_live_…'],
  [/\bwhsec_[A-Za-z0-9+/=]+/g, 'whsec_…'],
  [/signpost-verify=[0-9a-f]+/g, 'signpost-verify=…'],
  [/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, '2026-11-21T…Z'],
  [/\/r\/\w{7}\b/g, '/r/…'],
  [/"short_code":"\w{7}"/g, '"short_code":"…"'],
  [/http:\/\/127\.0\.0\.1:\d+/g, 'http://127.0.0.1:9999'],
  [/\b\d+ ms\b/g, '3 ms'],
  [/\S+ at the command line/g, 'you at the command line'],
  [/\b\d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d\b/g, '2026-10-24 to 2026-11-22'],
  [/\b\d+ on \d{4}-\d\d-\d\d\b/g, (text) => text.replace(/\S+$/, '2026-11-22')],
  [/\b\d+ \w{3} \d{4}, \d\d:\d\d \S+/g, '22 Nov 2026, 14:05 UTC'],
  [/\b\d+min ago\b/g, 'now'],
];

/** Columns stay where they are, as far as what is shortened allows. */
function shortened(text: string): string {
  return VOLATILE.reduce(
    (line, [pattern, shown]) =>
      line.replace(new RegExp(`(${pattern.source})( {2,})?`, 'g'), (_, token: string, gap: string | undefined) => {
        const short = typeof shown === 'string' ? shown : shown(token);
        return gap ? short.padEnd(token.length) + gap : short;
      }),
    text,
  );
}

const collapsed = (text: string) => text.replace(/ +/g, ' ');

/** Reading again gives the same, so what comes about in the background is waited for. */
const REPEATABLE = /^curl (?!.*(-X|-d))|^signpost \w+ (list|show|deliveries|audit|verify|analytics)/s;
const EVENTUALLY = { interval: 100 };

/** A command line of the page, with what it prints there. */
interface Step {
  readonly command: string;
  printed: string;
}

function stepsOf(block: string): Step[] {
  return block
    .split(/^\$ /m)
    .slice(1)
    .map((step) => {
      const lines = step.replace(/\n$/, '').split('\n');
      // A command goes on where a line ends with a backslash or within its quotation marks.
      let end = 1;
      while (end < lines.length && !complete(lines.slice(0, end).join('\n'))) end++;
      return { command: lines.slice(0, end).join('\n'), printed: lines.slice(end).join('\n') };
    });
}

const complete = (command: string) => !command.endsWith('\\') && (command.split("'").length - 1) % 2 === 0;

/** Runs command lines as bash does, with what stands for the world outside. */
function bash(signpost: Signpost, variables: ReadonlyMap<string, string>, command: string): Promise<string> {
  const functions = `
    exec 2>&1
    signpost() { '${process.execPath}' cli/main.ts "$@"; }
    curl() {
      local args=() rest
      for arg in "$@"; do case "$arg" in
        https://*) rest="\${arg#https://}"; args+=("${signpost.url}/\${rest#*/}" -H "Host: \${rest%%/*}") ;;
        *) args+=("$arg") ;;
      esac; done
      command curl "\${args[@]}"
    }`;
  const env = {
    ...process.env,
    ...Object.fromEntries(variables),
    CORE_PORT: String(signpost.corePort),
    SERVICE_TOKEN: signpost.serviceToken,
  };
  return new Promise((resolve) => {
    execFile('bash', ['-c', `${functions}\n${command}`], { env }, (_, stdout) => {
      resolve(stdout.replace(/\n$/, ''));
    });
  });
}

/** What was printed last that looks like the value that the page shows. */
function lastLike(shown: string, printed: string): string {
  const [start = ''] = shown.split('…');
  const found = printed
    .split(start)
    .at(-1)
    ?.match(/^[\w+/=]+/)?.[0];
  if (!printed.includes(start) || found === undefined) throw new Error(`nothing was printed that starts with ${start}`);
  return start + found;
}

async function run({ command, printed }: Step, world: World): Promise<string> {
  const { signpost, variables, transcript } = world;
  const assignment = /^(\w+)=(.*…)$/.exec(command);
  if (assignment) {
    const [, name = '', shown = ''] = assignment;
    variables.set(name, lastLike(shown, transcript.join('\n')));
    return '';
  }
  if (command.startsWith('dns ')) {
    const [, name = '', type, value = ''] = command.split(' ');
    world.dns?.set(name, type as 'TXT' | 'CNAME', variables.get(value.slice(1)) ?? value);
    return '';
  }
  let output = '';
  const read = async (asked: string) => {
    output = await bash(signpost, variables, asked);
    return collapsed(shortened(output));
  };
  // Each GET of a scan URL would count.
  const uncounted = command.replace(/^curl (?=.*\$SCAN_URL)/, 'curl --head ');
  const isRepeatable = REPEATABLE.test(command) && process.env.UPDATE !== '1';
  if (isRepeatable) await expect.poll(() => read(uncounted), EVENTUALLY).toBe(collapsed(printed));
  if (!isRepeatable || uncounted !== command) await read(command);
  transcript.push(output);
  return shortened(output);
}

interface World {
  readonly signpost: Signpost;
  readonly dns?: Dns;
  readonly variables: Map<string, string>;
  /** All that was printed. */
  readonly transcript: string[];
}

/**
 * Runs the command lines of all `console` blocks of a page, in order, and expects what the page shows; with `UPDATE=1`
 * it rewrites the page. A line like `CODE=qr_…` sets a variable to what was printed last that looks like this.
 * `variables`: those that are set before. `dns`: what the page's command `dns` changes.
 */
export async function runPage(
  path: string,
  {
    signpost,
    dns,
    variables = {},
  }: { readonly signpost: Signpost; readonly dns?: Dns; readonly variables?: Readonly<Record<string, string>> },
): Promise<void> {
  const world: World = {
    signpost,
    ...(dns && { dns }),
    variables: new Map(Object.entries(variables)),
    transcript: [],
  };
  const page = await readFile(path, 'utf8');

  const update = process.env.UPDATE === '1';
  let written = page;
  for (const [, block = ''] of page.matchAll(/```console\n(.*?)```/gs)) {
    const steps = stepsOf(block);
    for (const step of steps) {
      // What comes about in the background, where there is nothing yet to compare with.
      if (update) await new Promise((resolve) => setTimeout(resolve, 1_000));
      const printed = await run(step, world);
      if (!update)
        expect(`$ ${step.command}\n${collapsed(printed)}`).toBe(`$ ${step.command}\n${collapsed(step.printed)}`);
      step.printed = printed;
    }
    const shown = steps.map(({ command, printed }) => `$ ${command}\n${printed && `${printed}\n`}`).join('');
    written = written.replace(block, () => shown);
  }
  if (update) await writeFile(path, written);
}
