/**
 * Requests an image `concurrency` times concurrently, again and again, until it receives a message. It runs in its own
 * process, so that this client does not delay measured requests in a shared event loop.
 *
 *   fork('test/bench/image-load.ts', [JSON.stringify({ url, apiKey, concurrency })])
 */
import { Agent, get } from 'node:http';

const { url, apiKey, concurrency } = JSON.parse(process.argv[2] ?? '{}') as {
  url: string;
  apiKey: string;
  concurrency: number;
};
const agent = new Agent({ keepAlive: true, maxSockets: concurrency });
let isStopping = false;

process.once('message', () => {
  isStopping = true;
});
process.once('disconnect', () => process.exit());
while (!isStopping) await Promise.all(Array.from({ length: concurrency }, image));
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
