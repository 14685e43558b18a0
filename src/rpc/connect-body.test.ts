import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { COMPRESSIONS } from './connect-body.ts';

/** 2 MB of JSON in which little repeats, as in a batch with long targets. */
const words = Array.from({ length: 400 }, () => randomBytes(4).toString('base64url'));
const ANSWER = Buffer.from(
  JSON.stringify(Array.from({ length: 200_000 }, () => words[Math.floor(Math.random() * 400)])),
);

/** What it costs to compress an answer, as CPU time of all threads in µs. */
async function costOf({ compress, decompress }: (typeof COMPRESSIONS)[number]): Promise<number> {
  const start = process.cpuUsage();
  const compressed = await compress(ANSWER);
  const { user, system } = process.cpuUsage(start);
  expect(ANSWER.equals(await decompress(compressed, ANSWER.length))).toBe(true);
  return user + system;
}

test('no compression that a caller can choose takes much more CPU than gzip', async () => {
  const costs = [];
  for (const compression of COMPRESSIONS) costs.push(await costOf(compression));
  const [gzip = 0] = costs;
  for (const cost of costs) expect(cost).toBeLessThan(10 * gzip);
});
