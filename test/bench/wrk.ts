import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { requestHead } from './phone.ts';

/**
 * Writes a script for wrk that requests the codes of a file, starting with a random one, and returns its path. Codes are
 * taken in the order of the file, which is random itself: choosing each at random makes wrk slower than what it measures.
 * `close`: each request has its own connection.
 */
export async function wrkScript(folder: string, codes: string, close: boolean): Promise<string> {
  const script = join(folder, close ? 'connect.lua' : 'load.lua');
  const [start = '', end = ''] = requestHead('CODE', close).split('CODE');
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
function done(summary)
  local errors = summary.errors
  io.write(string.format('{"requests":%d,"rate":%f,"wrong":%d}\\n', summary.requests, summary.requests / summary.duration * 1e6,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
`,
  );
  return script;
}

function lua(text: string): string {
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\r', '\\r').replaceAll('\n', '\\n')}"`;
}
