import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { Webhook } from 'standardwebhooks';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { encodeId, newUuid } from '../../common/contract/ids.ts';
import { openKafkaLog } from '../../common/log/kafka.ts';
import { EVENTS } from '../../common/log/topics.ts';
import { freePort } from '../../local/free-port.ts';
import { cloudEvent } from '../../src/events/cloud-event.ts';
import { newSecret } from '../../src/webhooks/signature.ts';

const EVENTUALLY = { timeout: 25_000, interval: 50 };
const page = readFileSync('docs/events.md', 'utf8');

/** Runs a snippet of the page as it stands there; gives what it has printed. */
function runSnippet(name: string, env: Record<string, string>, change = (code: string) => code): () => string {
  const code = new RegExp(`\`\`\`js ${name}\n([^]*?)\`\`\``).exec(page)?.[1];
  if (code === undefined) throw new Error(`the page has no snippet ${name}`);
  const child = spawn(process.execPath, ['--input-type=module', '-e', change(code)], {
    env: { ...process.env, ...env },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (printed += text));
  return () => printed;
}

const kafkaBrokers = inject('kafkaBrokers');

test.skipIf(kafkaBrokers === null)('the consumer of the page reads events, in ten lines', async () => {
  const log = openKafkaLog({
    brokers: (kafkaBrokers ?? '').split(','),
    clientId: 'signpost-test',
    logger: pino({ level: 'silent' }),
  });
  onTestFinished(() => log.close());
  await log.ensureTopics([EVENTS]);
  const subject = encodeId('qr', newUuid());
  const accountId = encodeId('acct', newUuid());
  const event = cloudEvent({ type: 'qr.created', accountId, subject, at: Date.now(), data: { id: subject } });
  await log.publish(EVENTS.name, [event]);
  const ownGroup = (code: string) => code.replace('my-team', `test.${randomUUID()}`);
  const printed = runSnippet('consumer', { KAFKA_BROKERS: kafkaBrokers ?? '' }, ownGroup);
  const line = `${event.headers?.ce_id} qr.created { id: '${subject}' }`;
  await vi.waitFor(() => expect(printed()).toContain(line), EVENTUALLY);
});

test('the receiver of the page takes what is signed and refuses what is not', async () => {
  const secret = newSecret();
  const port = await freePort();
  const printed = runSnippet('receiver', { SECRET: secret, PORT: `${port}` });
  const body = JSON.stringify({ type: 'qr.created', timestamp: new Date().toISOString(), data: { name: 'schön' } });
  const post = async (signedWith: string) => {
    const now = new Date();
    const headers = {
      'webhook-id': 'evt_1',
      'webhook-timestamp': `${Math.floor(now.getTime() / 1_000)}`,
      'webhook-signature': new Webhook(signedWith).sign('evt_1', now, body),
    };
    return (await fetch(`http://127.0.0.1:${port}`, { method: 'POST', headers, body })).status;
  };
  await vi.waitFor(async () => expect(await post(secret)).toBe(204), EVENTUALLY);
  expect(await post(newSecret())).toBe(400);
  // A caller that disconnects in the middle of its body must not end the receiver.
  const aborted = connect(port, '127.0.0.1');
  aborted.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{');
  await once(aborted, 'connect');
  // Long enough for the head to be read.
  await sleep(200);
  aborted.resetAndDestroy();
  expect(await post(newSecret())).toBe(400);
  expect(printed()).toBe("evt_1 qr.created { name: 'schön' }\n");
});
