import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { requestHead } from './phone.ts';

/** The result of a run of wrk; latencies in ms. */
export interface WrkResult {
  readonly requests: number;
  readonly rate: number;
  readonly p50: number;
  readonly p99: number;
  readonly wrong: number;
}

/** The redirects of the measured server. */
export interface Redirects {
  /** The path without the code. */
  readonly prefix: string;
  readonly status: number;
  /** The start of each `Location`. */
  readonly target: string;
}

/**
 * Writes a script for wrk that requests the codes of a file, starting with a random one, and returns its path. Codes
 * are taken in the order of the file, which is random itself: choosing each at random makes wrk slower than what it
 * measures. `close`: each request has its own connection. `expected`: each answer is compared with it, which takes wrk
 * about 1 µs of CPU more; without it only for a status below
 * 400. The script prints a `WrkResult` as JSON.
 */
export async function wrkScript(folder: string, codes: string, close: boolean, expected?: Redirects): Promise<string> {
  const script = join(folder, close ? 'connect.lua' : 'load.lua');
  const [start = '', end = ''] = requestHead('CODE', close, expected?.prefix).split('CODE');
  await writeFile(
    script,
    `local codes, count, at = {}, 0, 0
function init()
  math.randomseed(os.time())
  for code in io.lines(${JSON.stringify(codes)}) do count = count + 1; codes[count] = code end
  at = math.random(count)
end
function request()
  at = at % count + 1
  return ${lua(start)} .. codes[at] .. ${lua(end)}
end
${expected ? checking(expected) : 'function unexpected() return 0 end'}
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format('{"requests":%d,"rate":%f,"p50":%f,"p99":%f,"wrong":%d}\\n', summary.requests,
    summary.requests / summary.duration * 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout + unexpected()))
end
`,
  );
  return script;
}

/** Counts answers that are no expected redirect, each in the thread that got it; `unexpected()` adds them up. */
function checking({ status, target }: Redirects): string {
  return `local threads = {}
function setup(thread) table.insert(threads, thread) end
wrong = 0
function response(status, headers)
  local location = headers['Location'] or headers['location'] or ''
  if status ~= ${status} or location:sub(1, ${target.length}) ~= ${lua(target)} then wrong = wrong + 1 end
end
function unexpected()
  local sum = 0
  for _, thread in ipairs(threads) do sum = sum + thread:get('wrong') end
  return sum
end`;
}

function lua(text: string): string {
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\r', '\\r').replaceAll('\n', '\\n')}"`;
}
