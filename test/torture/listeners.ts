import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import { patchTimers } from '../../common/log/patch-kafkajs-timers.ts';
import { EVENTS } from '../../common/log/topics.ts';
import { LOOPBACK } from '../../local/free-port.ts';

/** What somebody outside has heard of events. */
export interface Heard extends AsyncDisposable {
  /** `evt_…`, and how often it came. */
  readonly ids: ReadonlyMap<string, number>;
  /** Targets of the codes that events were about. */
  readonly targets: ReadonlySet<string>;
}

class Hearing {
  readonly ids = new Map<string, number>();
  readonly targets = new Set<string>();

  hear(id: string, data: { target_url?: string } | undefined): void {
    this.ids.set(id, (this.ids.get(id) ?? 0) + 1);
    if (data?.target_url !== undefined) this.targets.add(data.target_url);
  }
}

/** A webhook endpoint, which answers 204 at once. */
export async function startWebhookReceiver(): Promise<Heard & { readonly url: string }> {
  const hearing = new Hearing();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('error', () => undefined);
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { data } = JSON.parse(Buffer.concat(chunks).toString());
      hearing.hear(String(request.headers['webhook-id']), data);
      response.writeHead(204).end();
    });
  });
  server.listen(0, LOOPBACK);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return Object.assign(hearing, {
    url: `http://${LOOPBACK}:${port}/hook`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  });
}

/** A consumer of the topic of events, as docs/events.md shows one. */
export async function startEventConsumer(brokers: string): Promise<Heard> {
  patchTimers();
  const hearing = new Hearing();
  const kafka = new kafkajs.Kafka({ brokers: brokers.split(','), logLevel: kafkajs.logLevel.NOTHING });
  let over = false;
  let consumer = kafka.consumer({ groupId: 'torture' });
  const run = async () => {
    await consumer.connect();
    await consumer.subscribe({ topic: EVENTS.name, fromBeginning: true });
    await consumer.run({
      async eachMessage({ message: { headers, value } }) {
        hearing.hear(String(headers?.ce_id), JSON.parse(String(value)));
      },
    });
  };
  /** kafkajs gives up on some failures; its user starts again. */
  const keepRunning = async () => {
    while (!over) {
      const crashed = new Promise<void>((resolve) => {
        consumer.on(consumer.events.CRASH, ({ payload }) => {
          if (!payload.restart) resolve();
        });
      });
      await run().then(
        () => crashed,
        () => undefined,
      );
      if (over) return;
      await consumer.disconnect().catch(() => undefined);
      await sleep(500);
      consumer = kafka.consumer({ groupId: 'torture' });
    }
  };
  keepRunning();
  return Object.assign(hearing, {
    async [Symbol.asyncDispose]() {
      over = true;
      await consumer.disconnect().catch(() => undefined);
    },
  });
}
