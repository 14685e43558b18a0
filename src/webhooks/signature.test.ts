import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { newSecret, signatures } from './signature.ts';

const event = {
  id: 'evt_1',
  timestamp: Math.floor(Date.now() / 1_000),
  body: '{"type":"qr.created","name":"schön €"}',
};

function verifies(secret: string, signature: string, { id, timestamp, body } = event): boolean {
  const headers = { 'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': signature };
  try {
    new Webhook(secret).verify(body, headers);
    return true;
  } catch {
    return false;
  }
}

test('a signature equals that of the Standard Webhooks library', () => {
  const secret = newSecret();
  const signature = signatures(event, [secret]);
  expect(signature).toBe(new Webhook(secret).sign(event.id, new Date(event.timestamp * 1_000), event.body));
  expect(verifies(secret, signature)).toBe(true);
});

test('with two secrets the signature verifies with either, and not with a third', () => {
  const [current, former, other] = [newSecret(), newSecret(), newSecret()] as const;
  const signature = signatures(event, [current, former]);
  expect([current, former, other].map((secret) => verifies(secret, signature))).toEqual([true, true, false]);
});

test('an altered id, timestamp or body does not verify', () => {
  const secret = newSecret();
  const signature = signatures(event, [secret]);
  expect(verifies(secret, signature, { ...event, id: 'evt_2' })).toBe(false);
  expect(verifies(secret, signature, { ...event, timestamp: event.timestamp - 1 })).toBe(false);
  expect(verifies(secret, signature, { ...event, body: `${event.body} ` })).toBe(false);
});
