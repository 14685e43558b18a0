import { execFile } from 'node:child_process';
import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { expect, onTestFinished } from 'vitest';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { decodeId } from '../../common/contract/ids.ts';
import type { Process, Signpost } from '../harness/processes.ts';

/** Simulated visitors that scan the same code repeatedly. */
export interface Visitors {
  /** Requests sent: each may be counted. */
  readonly sent: number;
  /** Redirects received: each must be counted. */
  readonly answered: number;
  /** Other answers, by status. */
  readonly others: Map<number | undefined, number>;
  /** Requests without an answer, by error code. */
  readonly failed: Map<string, number>;
  stop(): Promise<void>;
}

/** The pause between the scans of one visitor, in ms, so that they don't saturate the CPU cores. */
const PAUSE_MS = 20;
const TIMEOUT_MS = 5_000;

/** `url`: the requested scan URL. `keepAlive`: whether each visitor keeps its connection or opens one per scan. */
export function startVisitors(url: string, count = 16, keepAlive = true): Visitors {
  let going = true;
  const visitors = { sent: 0, answered: 0, others: new Map(), failed: new Map<string, number>() };
  const all = Array.from({ length: count }, async () => {
    const agent = new Agent({ keepAlive, maxSockets: 1 });
    while (going) {
      visitors.sent++;
      try {
        const status = await statusOf(url, agent);
        if (status === 302) visitors.answered++;
        else visitors.others.set(status, (visitors.others.get(status) ?? 0) + 1);
      } catch (error) {
        const { code = 'none' } = error as NodeJS.ErrnoException;
        visitors.failed.set(code, (visitors.failed.get(code) ?? 0) + 1);
      }
      await sleep(PAUSE_MS);
    }
    agent.destroy();
  });
  const stop = async () => {
    going = false;
    await Promise.all(all);
  };
  onTestFinished(stop);
  return Object.assign(visitors, { stop });
}

/** The status of a scan; by default over a new connection. */
export function statusOf(url: string, agent?: Agent): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const request = get(url, { timeout: TIMEOUT_MS, ...(agent ? { agent } : { agent: false }) }, (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode));
      response.once('error', reject);
    });
    request.once('timeout', () => request.destroy(Object.assign(new Error('no answer'), { code: 'TIMEOUT' })));
    request.once('error', reject);
  });
}

/** The scans of a code in Postgres, and its counter. */
export async function counted(databaseUrl: string, code: CodeJson): Promise<{ scans: number; counter: number }> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ scans: string; counter: string }>(
      `select (select count(distinct id) from scans where code_id = $1) as scans,
              coalesce((select scans from scan_totals where code_id = $1), 0) as counter`,
      [decodeId('qr', code.id)],
    );
    return { scans: Number(rows[0]?.scans), counter: Number(rows[0]?.counter) };
  } finally {
    await client.end();
  }
}

/**
 * Expects that every answered scan is counted, that no more are counted than were requested, and that counters agree
 * with rows.
 */
export async function expectCounted(
  databaseUrl: string,
  code: CodeJson,
  visitors: readonly Pick<Visitors, 'sent' | 'answered'>[],
): Promise<void> {
  const total = (figure: 'answered' | 'sent') => visitors.reduce((sum, each) => sum + each[figure], 0);
  const enough = { timeout: 60_000, interval: 250 };
  const scans = async () => (await counted(databaseUrl, code)).scans;
  await expect.poll(scans, enough).toBeGreaterThanOrEqual(total('answered'));
  // Longer than delayed scans take to arrive.
  await sleep(1_500);
  const settled = await counted(databaseUrl, code);
  expect(settled.scans).toBeLessThanOrEqual(total('sent'));
  expect(settled.counter).toBe(settled.scans);
}

/** The process ids of a gateway's children that run one program. */
export async function childrenOf(gateway: Pick<Process, 'pid'>, program: string): Promise<number[]> {
  const found = await promisify(execFile)('pgrep', ['-P', String(gateway.pid), '-f', program]).catch((error) => {
    // Nothing matches.
    if (error.code === 1) return { stdout: '' };
    throw error;
  });
  return found.stdout.split('\n').filter(Boolean).map(Number);
}

/** Sends SIGKILL; resolves when its children have exited as well, which they do when they notice. */
export async function killWithChildren(gateway: Process): Promise<void> {
  const children = await childrenOf(gateway, 'gateway/');
  await gateway.kill();
  while (children.some(isThere)) await sleep(10);
}

export function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** The scan URL of a code on the first gateway. */
export function scanUrl(signpost: Signpost, code: CodeJson): string {
  return `${signpost.url}/r/${code.short_code}`;
}
