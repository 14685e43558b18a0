import { execFile } from 'node:child_process';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { expect, onTestFinished, test } from 'vitest';
import { startReceiver } from '../src/webhooks/receiver.fixture.ts';
import { type Dns, startDns } from './harness/dns.ts';
import { type Signpost, startSignpost } from './harness/processes.ts';

const PAGE = 'docs/first-account.md';

/** What is different in every run, and how the page shows it. */
const VOLATILE: readonly (readonly [RegExp, string | ((token: string) => string)])[] = [
  [/\b(?:acct|qr|batch|folder|tag|domain|hook|dlv|mbr|evt)_[0-9a-z]{26}/g, (id) => `${id.split('_')[0]}_…`],
  [/\bsk_live_\w{43}/g, 'sk_live_…'],
  [/\bwhsec_[A-Za-z0-9+/=]+/g, 'whsec_…'],
  [/signpost-verify=[0-9a-f]+/g, 'signpost-verify=…'],
  [/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, '2026-11-21T…Z'],
  [/\/r\/\w{7}\b/g, '/r/…'],
  [/"short_code":"\w{7}"/g, '"short_code":"…"'],
  [/http:\/\/127\.0\.0\.1:\d+/g, 'http://127.0.0.1:9999'],
  [/\b\d+ ms\b/g, '3 ms'],
  [/\S+ at the command line/g, 'you at the command line'],
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
const REPEATABLE = /^curl (?!.*(-X|-d))|^signpost \w+ (list|show|deliveries|audit|verify)/s;
const EVENTUALLY = { timeout: 20_000, interval: 100 };

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
    execFile('bash', ['-c', `${functions}\n${command}`], { env }, (_, stdout, stderr) => {
      resolve((stdout + stderr).replace(/\n$/, ''));
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
  const { signpost, dns, variables, transcript } = world;
  const assignment = /^(\w+)=(.*…)$/.exec(command);
  if (assignment) {
    const [, name = '', shown = ''] = assignment;
    variables.set(name, lastLike(shown, transcript.join('\n')));
    return '';
  }
  if (command.startsWith('dns ')) {
    const [, name = '', type, value = ''] = command.split(' ');
    dns.set(name, type as 'TXT' | 'CNAME', variables.get(value.slice(1)) ?? value);
    return '';
  }
  let output = await bash(signpost, variables, command);
  const expected = collapsed(printed);
  if (REPEATABLE.test(command) && process.env.UPDATE !== '1') {
    const again = async () => {
      output = await bash(signpost, variables, command);
      return collapsed(shortened(output));
    };
    if (collapsed(shortened(output)) !== expected) await expect.poll(again, EVENTUALLY).toBe(expected);
  }
  transcript.push(output);
  return shortened(output);
}

interface World {
  readonly signpost: Signpost;
  readonly dns: Dns;
  readonly variables: Map<string, string>;
  /** All that was printed. */
  readonly transcript: string[];
}

test('the page about a new account shows what really happens, line by line', async () => {
  const [dns, receiver] = [await startDns(), await startReceiver()];
  onTestFinished(() => rm('/tmp/tables.zip', { force: true }));
  const env = { PUBLIC_URL: 'https://sign.example', DNS_RESOLVERS: dns.address, WEBHOOKS_ALLOW_PRIVATE: 'true' };
  const signpost = await startSignpost({ env });
  const world: World = { signpost, dns, variables: new Map([['RECEIVER', receiver.url]]), transcript: [] };
  const page = await readFile(PAGE, 'utf8');
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
  if (update) await writeFile(PAGE, written);
}, 120_000);
