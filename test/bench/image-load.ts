/**
 * Asks for an image, so many times at once, round after round, until it is sent anything. A process of its own, so that
 * what others wait is not what this client costs them in a shared event loop.
 *
 *   fork('test/bench/image-load.ts', [JSON.stringify({ url, apiKey, atOnce })])
 */
import { Agent, get } from 'node:http';

const { url, apiKey, atOnce } = JSON.parse(process.argv[2] ?? '{}') as { url: string; apiKey: string; atOnce: number };
const agent = new Agent({ keepAlive: true, maxSockets: atOnce });
let isOver = false;

process.once('message', () => {
  isOver = true;
});
process.once('disconnect', () => process.exit());
while (!isOver) await Promise.all(Array.from({ length: atOnce }, image));
process.disconnect?.();

function image(): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent, headers: { authorization: `Bearer ${apiKey}` } }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`an image answered ${response.statusCode}`));
      response.resume().once('end', resolve);
    });
    request.once('error', reject);
  });
}
