/**
 * Runs in the background, and prints the priorities of its threads and that of its group once it is lowered or 2 s
 * later.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { runInBackground } from './run-in-background.ts';

const group = () => (existsSync('/proc/self/autogroup') ? readFileSync('/proc/self/autogroup', 'utf8') : '');

const before = group();
runInBackground();
const threads = readdirSync('/proc/self/task').map((thread) => getPriority(Number(thread)));
for (let waited = 0; process.argv[2] === 'wait' && group() === before && waited < 2_000; waited += 50) await sleep(50);
console.log(JSON.stringify({ threads, before, after: group() }));
