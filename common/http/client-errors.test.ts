import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { answerClientErrors } from './client-errors.ts';

const POST = 'POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n';

/** What a server answers that answers all requests with 404, without reading their bodies. */
async function answersTo(...parts: readonly string[]): Promise<string> {
  const server = createServer((_, response) => {
    errors.add(response);
    response.writeHead(404).end();
  });
  const errors = answerClientErrors(server, { json: (error) => ({ error }) });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  onTestFinished(() => {
    socket.destroy();
    server.close();
  });
  const received = socket.toArray();
  for (const part of parts) {
    socket.write(part);
    await sleep(20);
  }
  return Buffer.concat(await received).toString();
}

async function statusesOf(...parts: readonly string[]): Promise<string[]> {
  return [...(await answersTo(...parts)).matchAll(/HTTP\/1\.1 (\d+)/gm)].map(([, status]) => String(status));
}

test.each([
  ['has no second answer', [POST, '5\r\nabcdeXX'], ['404']],
  ['has none either with the first part of its body', [`${POST}5\r\nab`, 'cdeXX'], ['404']],
  ['does not keep the next one waiting', [`${POST}5\r\nhello\r\n0\r\n\r\n`, 'garbage\r\n\r\n'], ['404', '400']],
  [
    'does not keep it waiting in the same piece either',
    [`${POST}5\r\nhello\r\n0\r\n\r\ngarbage\r\n\r\n`],
    ['404', '400'],
  ],
  ['is not confused with the next one', [`${POST}0\r\n\r\n`, 'garbage\r\n\r\n'], ['404', '400']],
  ['is not confused with the previous one', [`${POST}0\r\n\r\n`, POST, 'zz\r\n'], ['404', '404']],
])('a malformed request that has been answered %s', async (_, parts, statuses) => {
  expect(await statusesOf(...parts)).toEqual(statuses);
});

test('a malformed head is answered with 400, and the date as every 4xx (RFC 9110 §6.6.1)', async () => {
  expect(await answersTo('garbage\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n.*\r\nDate: [^\r]+ GMT\r\n/s);
});
