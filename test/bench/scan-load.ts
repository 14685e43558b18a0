import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { create } from '@bufbuild/protobuf';
import { pino } from 'pino';
import { encodeId, newUuid } from '../../common/contract/ids.ts';
import { openRouteTable } from '../../gateway/redirect/routes/route-table.ts';
import { LOOPBACK } from '../../local/free-port.ts';
import { Answer, RouteSchema } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import type { Policy } from '../../proto/gen/signpost/targets/v1/policy_pb.ts';
import { newShortCode } from '../../src/codes/create/short-code.ts';
import type { Measured } from './load.ts';
import * as subject from './scan-subjects.ts';
import { wrkScript } from './wrk.ts';

export const CONNECTIONS = 64;
/** How many connections are open at a time when each carries one request. */
const NEW_CONNECTIONS = 32;

/** Whether wrk is installed. */
export const wrk = subject.isInstalled('wrk');

const run = promisify(execFile);
const logger = pino({ level: 'warn' });

/**
 * Requests per second, the p99 of their responses in ms, CPU time for each in µs, and responses other than a redirect.
 * With new connections the p99 counts from when the connection is open.
 */
export interface Throughput {
  readonly rate: number;
  readonly p99: number;
  readonly cpu: number;
  readonly wrong: number;
}

/**
 * The load on a subject, in rounds of some seconds. `folder`: for the script of wrk. `codes`: a file of short codes.
 */
export function scanLoad(folder: string, seconds: number) {
  /** Sends as many requests as possible. `close`: with a new connection for each, which requires wrk. */
  async function maxThroughput(each: subject.Subject, codes: string, close = false): Promise<Throughput> {
    const before = await subject.cpuOf(each);
    const { requests, rate, p99, wrong } = wrk ? await wrkOf(each, codes, close) : await load(each, codes);
    return { rate, p99, wrong, cpu: ((await subject.cpuOf(each)) - before) / requests };
  }

  async function wrkOf({ port, proxyUrl }: subject.Subject, codes: string, close: boolean): Promise<Measured> {
    const script = await wrkScript(folder, codes, close);
    const connections = close ? NEW_CONNECTIONS : CONNECTIONS;
    const options = [
      '-t1',
      `-c${connections}`,
      `-d${seconds}s`,
      '-s',
      script,
      proxyUrl ?? `http://${LOOPBACK}:${port}/`,
    ];
    // A load with priority would leave a proxy no time.
    const { stdout } = await (proxyUrl ? run('wrk', options) : runWithPriority('wrk', options));
    return JSON.parse(/^\{.*\}$/m.exec(stdout)?.[0] ?? '') as Measured;
  }

  async function load({ port }: subject.Subject, codes: string, rate?: number): Promise<Measured> {
    const options = { port, connections: CONNECTIONS, seconds, rate, codes };
    const program = join(import.meta.dirname, 'load.ts');
    const { stdout } = await runWithPriority(process.execPath, [program, JSON.stringify(options)]);
    return JSON.parse(stdout) as Measured;
  }

  return { maxThroughput, load };
}

function runWithPriority(program: string, options: readonly string[]): Promise<{ stdout: string }> {
  const [command = '', ...more] = [...subject.first, program, ...options];
  return run(command, more);
}

/**
 * Creates codes, in a file for the load and in a route table for a gateway, whose folder is `folder`. `policyOf`: the
 * policy of the code at a position, if it has one.
 */
export async function fillTable(
  folder: string,
  count: number,
  policyOf: (position: number) => Policy | undefined = () => undefined,
): Promise<{ folder: string; codes: string; shortCodes: readonly string[] }> {
  const codes = `${folder}.codes`;
  const shortCodes = Array.from({ length: count }, newShortCode);
  await writeFile(codes, shortCodes.join('\n'));
  const table = openRouteTable(join(folder, 'routes'), logger);
  const accountId = encodeId('acct', newUuid());
  for (let at = 0; at < count; at += 10_000) {
    const routes = shortCodes.slice(at, at + 10_000).map((shortCode, index) => {
      const targetUrl = `https://example.com/menu?table=${shortCode}`;
      const policy = policyOf(at + index);
      const value = { shortCode, codeId: encodeId('qr', newUuid()), accountId, answer: Answer.REDIRECT, targetUrl };
      const withPolicy = { ...value, ...(policy && { policy, targetVersion: 2 }) };
      return create(RouteSchema, { version: 1n, entry: { case: 'code', value: withPolicy } });
    });
    await table.advance(routes, { partition: 0, next: 0n });
  }
  await table.close();
  return { folder, codes, shortCodes };
}
