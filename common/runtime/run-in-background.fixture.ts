/** Runs in the background, and prints the priorities of its threads and that of its group. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { runInBackground } from './run-in-background.ts';

const group = () => (existsSync('/proc/self/autogroup') ? readFileSync('/proc/self/autogroup', 'utf8') : '');

const before = group();
runInBackground();
const threads = readdirSync('/proc/self/task').map((thread) => getPriority(Number(thread)));
console.log(JSON.stringify({ threads, before, after: group() }));
