import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { ScansService } from '../../proto/gen/signpost/scans/v1/scans_pb.ts';
import { contract } from '../contract/client.ts';
import { internal } from '../contract/internal.ts';
import type { Process } from '../harness/processes.ts';
import { childrenOf, expectCounted } from './visitors.ts';

const EVENTUALLY = { timeout: 60_000, interval: 100 };
const WORKERS = 2;

const running = contract({ env: { GATEWAY_WORKERS: String(WORKERS) } });
let gateway: Process;
let code: CodeJson;
beforeAll(async () => {
  [gateway] = running.signpost.gateways as [Process];
});

async function newCode(): Promise<CodeJson> {
  code = await (await running.account()).create();
  return code;
}

function workers(): Promise<number[]> {
  return childrenOf(gateway, 'gateway/worker.ts');
}

function scan(connection: 'close' | 'keep-alive'): string {
  return `GET /r/${code.short_code} HTTP/1.1\r\nhost: signpost.example\r\nconnection: ${connection}\r\n\r\n`;
}

function open(): Socket {
  const socket = connect({ port: Number(new URL(gateway.url).port), host: '127.0.0.1', noDelay: true });
  onTestFinished(() => void socket.destroy());
  return socket.on('error', () => undefined).setEncoding('latin1');
}

/** Outcome of connections that carry one scan each. `hanging`: no outcome for a long time. */
interface Outcomes {
  answered: number;
  refused: number;
  reset: number;
  hanging: number;
  /** Number of connections opened. */
  sent: number;
}

const HANGING_MS = 30_000;
/** The pause between two connections, in ms, so that they don't saturate the CPU cores. */
const PAUSE_MS = 20;

/** Opens connections one after the other, some concurrently, until the returned function is called. */
function churn(outcomes: Outcomes, count = 32): () => Promise<void> {
  let going = true;
  const all = Array.from({ length: count }, async () => {
    while (going) {
      outcomes.sent++;
      const outcome = await outcomeOf(open());
      outcomes[outcome]++;
      await sleep(PAUSE_MS);
    }
  });
  const stop = async () => {
    going = false;
    await Promise.all(all);
  };
  onTestFinished(stop);
  return stop;
}

function outcomeOf(socket: Socket): Promise<Exclude<keyof Outcomes, 'sent'>> {
  return new Promise((resolve) => {
    let received = '';
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code === 'ECONNREFUSED' ? 'refused' : 'reset'));
    socket.setTimeout(HANGING_MS, () => {
      resolve('hanging');
      socket.destroy();
    });
    socket.on('data', (text: string) => {
      received += text;
    });
    socket.once('close', () => resolve(received.startsWith('HTTP/1.1 302 ') ? 'answered' : 'reset'));
    socket.write(scan('close'));
  });
}

function none(): Outcomes {
  return { answered: 0, refused: 0, reset: 0, hanging: 0, sent: 0 };
}

/** Number of open descriptors of the gateway's first process. */
async function descriptors(): Promise<number> {
  return (await readdir(`/proc/${gateway.pid}/fd`)).length;
}

/** Connections that carry one scan after the other and wait for their answers without a timeout. */
function keepScanning(figures: { sent: number; answered: number }, count: number): Socket[] {
  return Array.from({ length: count }, () => {
    const socket = open();
    const next = () => {
      figures.sent++;
      socket.write(scan('keep-alive'));
    };
    socket.once('connect', next);
    socket.on('data', (text: string) => {
      // No answer is long enough to arrive in pieces.
      if (text.startsWith('HTTP/1.1 302 ')) figures.answered++;
      next();
    });
    return socket;
  });
}

test('workers paused while the first process is killed lose no scan when they resume after a restart', async () => {
  await newCode();
  const figures = { sent: 0, answered: 0 };
  for (let round = 0; round < 2; round++) {
    const { answered } = figures;
    const sockets = keepScanning(figures, 64);
    await expect.poll(() => figures.answered, EVENTUALLY).toBeGreaterThan(answered + 2_000);
    const stopped = await workers();
    expect(stopped).toHaveLength(WORKERS);
    // Mostly in the middle of an iteration of their event loop.
    for (const pid of stopped) process.kill(pid, 'SIGSTOP');
    await gateway.kill();
    await gateway.restart();
    // Only the new workers have the port.
    const fresh = none();
    const stop = churn(fresh, 4);
    await expect.poll(() => fresh.answered, EVENTUALLY).toBeGreaterThan(50);
    await sleep(4_000);
    for (const pid of stopped) signal(pid, 'SIGCONT');
    await sleep(1_000);
    await stop();
    for (const socket of sockets) socket.destroy();
    expect(fresh).toMatchObject({ refused: 0, reset: 0, hanging: 0 });
    figures.sent += fresh.sent;
    figures.answered += fresh.answered;
  }
  await expectCounted(running.signpost.databaseUrl, code, [figures]);
  const audit = () =>
    internal(running.signpost, ScansService).auditScans({
      from: timestampFromMs(Date.now() - 86_400_000),
      to: timestampFromMs(Date.now()),
    });
  await expect.poll(async () => (await audit()).waiting, EVENTUALLY).toBe(0n);
  const ledger = await audit();
  expect(ledger.recorded).toBeGreaterThanOrEqual(BigInt(figures.answered));
  expect([ledger.answered, ledger.spooled, ledger.counted]).toEqual(Array(3).fill(ledger.recorded));
  expect(ledger.differences).toEqual([]);
}, 180_000);

/** Sends a signal to a process that may have exited. */
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    expect((error as NodeJS.ErrnoException).code).toBe('ESRCH');
  }
}

test('a worker that is killed leaves no connection hanging, and no descriptor in the first process', async () => {
  await newCode();
  const before = await descriptors();
  const outcomes = none();
  const stop = churn(outcomes);
  for (let round = 0; round < 3; round++) {
    const { answered } = outcomes;
    await expect.poll(() => outcomes.answered, EVENTUALLY).toBeGreaterThan(answered + 500);
    const [victim = 0] = await workers();
    process.kill(victim, 'SIGKILL');
    const others = async () => (await workers()).filter((pid) => pid !== victim);
    await expect.poll(async () => (await others()).length, EVENTUALLY).toBe(WORKERS);
  }
  await stop();
  // Connections accepted by a worker are closed with it.
  expect(outcomes).toMatchObject({ hanging: 0, refused: 0 });
  await expect.poll(descriptors, EVENTUALLY).toBeLessThanOrEqual(before);
  await expectCounted(running.signpost.databaseUrl, code, [outcomes]);
}, 180_000);

test('a worker that is starting when the gateway stops answers who waits for it, and stops like the others', async () => {
  await newCode();
  const { length } = await gateway.log();
  const [victim = 0, ...rest] = await workers();
  process.kill(victim, 'SIGKILL');
  const started = async () => (await workers()).filter((pid) => pid !== victim && !rest.includes(pid));
  await expect.poll(started, EVENTUALLY).toHaveLength(1);
  // The kernel assigns some of them to the worker that is starting.
  const sockets = Array.from({ length: 32 }, open);
  const outcomes = Promise.all(sockets.map(outcomeOf));
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  await gateway.kill('SIGTERM');
  expect(await outcomes).toEqual(Array(32).fill('answered'));
  const log = (await gateway.log()).slice(length);
  expect(log).not.toContain('has not stopped in time');
  expect(log.match(/the worker has stopped/g)).toHaveLength(WORKERS);
  await gateway.restart();
});
