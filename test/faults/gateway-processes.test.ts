import { once } from 'node:events';
import { openSync, readFileSync, statSync, truncateSync, writeSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { contract, type One } from '../contract/client.ts';
import type { Process } from '../harness/processes.ts';
import { childrenOf, expectCounted, killWithChildren, scanUrl, startVisitors, statusOf } from './visitors.ts';

const EVENTUALLY = { interval: 100 };
const WORKERS = 3;

const running = contract({ env: { GATEWAY_WORKERS: String(WORKERS) } });
let account: Awaited<ReturnType<typeof running.account>>;
let gateway: Process;
beforeAll(async () => {
  account = await running.account();
  [gateway] = running.signpost.gateways as [Process];
});

/** The target of a scan over a new connection: workers accept them in turn. */
async function locationOf(code: CodeJson): Promise<string | undefined> {
  const asked = get(scanUrl(running.signpost, code), { agent: new Agent({ keepAlive: false }) });
  const [response] = await once(asked, 'response');
  response.resume();
  return response.headers.location;
}

test('a change is visible to every worker once its request is answered', async () => {
  const code = await account.create();
  for (let change = 0; change < 20; change++) {
    const target = `https://example.com/${change}`;
    const changed = await account.call<One>('PATCH', `/qr-codes/${code.id}`, { json: { target_url: target } });
    expect(changed.status).toBe(200);
    const seen = await Promise.all(Array.from({ length: 4 * WORKERS }, () => locationOf(code)));
    expect(new Set(seen)).toEqual(new Set([target]));
  }
});

test('workers killed under load are replaced, and the scans they answered are counted', async () => {
  const code = await account.create();
  const visitors = startVisitors(scanUrl(running.signpost, code));
  for (let round = 0; round < 2; round++) {
    const before = visitors.answered;
    await expect.poll(() => visitors.answered, EVENTUALLY).toBeGreaterThan(before + 500);
    const [victim = 0] = await childrenOf(gateway, 'gateway/worker.ts');
    process.kill(victim, 'SIGKILL');
    const others = async () => (await childrenOf(gateway, 'gateway/worker.ts')).filter((pid) => pid !== victim);
    await expect.poll(async () => (await others()).length, EVENTUALLY).toBe(WORKERS);
  }
  await visitors.stop();
  expect(await gateway.log()).toContain('has exited and is restarted');
  await expectCounted(running.signpost.databaseUrl, code, [visitors]);
});

test('a killed carrier is replaced without affecting scans', async () => {
  const code = await account.create();
  const visitors = startVisitors(scanUrl(running.signpost, code), 4);
  const [victim = 0] = await childrenOf(gateway, 'gateway/carrier.ts');
  process.kill(victim, 'SIGKILL');
  await expect.poll(() => childrenOf(gateway, 'gateway/carrier.ts'), EVENTUALLY).toEqual([expect.any(Number)]);
  await expect.poll(() => visitors.answered, EVENTUALLY).toBeGreaterThan(1_000);
  await visitors.stop();
  expect([...visitors.failed, ...visitors.others]).toEqual([]);
  await expectCounted(running.signpost.databaseUrl, code, [visitors]);
  expect(await childrenOf(gateway, 'gateway/carrier.ts')).not.toContain(victim);
});

describe('a damaged route table is rebuilt from its topic', () => {
  const table = () => join(running.signpost.dataDir, 'gateway-0', 'routes', 'data.mdb');
  const PAGE = 4_096;

  const damages: Record<string, (path: string) => void> = {
    'pages of nonsense': (path) => {
      const file = openSync(path, 'r+');
      for (let at = 2 * PAGE; at < statSync(path).size; at += PAGE) {
        writeSync(file, Buffer.alloc(PAGE, 'nonsense'), 0, PAGE, at);
      }
    },
    'nothing but nonsense': (path) => {
      const file = openSync(path, 'r+');
      const { size } = statSync(path);
      writeSync(file, Buffer.alloc(size, 'nonsense'), 0, size, 0);
    },
    'all but its beginning missing': (path) => truncateSync(path, 2 * PAGE),
  };

  async function codes(): Promise<CodeJson[]> {
    const created = await Promise.all(Array.from({ length: 20 }, () => account.create()));
    for (const code of created) await locationOf(code);
    return created;
  }

  /** `before`: the length of the gateway's log before the damage. */
  async function expectFollowed(created: readonly CodeJson[], before: number): Promise<void> {
    const complete = async () => {
      const ready = (await (await fetch(`${gateway.url}/readyz`)).json()) as { routes: { age_ms: number | null } };
      return ready.routes.age_ms;
    };
    await expect.poll(complete, EVENTUALLY).not.toBeNull();
    for (const code of created) expect(await statusOf(scanUrl(running.signpost, code))).toBe(302);
    // From the topic, not by queries to Postgres.
    const bytes = readFileSync(table());
    for (const { short_code } of created) expect(bytes.includes(`c${short_code}`)).toBe(true);
    const logged = (await gateway.log()).slice(before);
    expect(logged).toContain('the route table is damaged; it is rebuilt from its topic');
  }

  test.each(Object.keys(damages))(
    'at the start: %s',
    async (damage) => {
      const created = await codes();
      await killWithChildren(gateway);
      const { length } = await gateway.log();
      damages[damage]?.(table());
      await gateway.restart();
      await expectFollowed(created, length);
    },
    60_000,
  );

  test('while it runs', async () => {
    const created = await codes();
    const { length } = await gateway.log();
    damages['all but its beginning missing']?.(table());
    const answers = async () =>
      Promise.all(created.map((code) => statusOf(scanUrl(running.signpost, code)).catch(() => 'none')));
    await expect.poll(answers, EVENTUALLY).toEqual(created.map(() => 302));
    await expectFollowed(created, length);
  });
});
