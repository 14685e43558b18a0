import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import { patchTimers } from '../../common/log/patch-kafkajs-timers.ts';
import { EVENTS } from '../../common/log/topics.ts';
import { LOOPBACK } from '../../local/free-port.ts';

/** The events that an external receiver has got. */
export interface ReceivedEvents extends AsyncDisposable {
  /** How often each event was received, by its id `evt_…`. */
  readonly ids: ReadonlyMap<string, number>;
  /** The targets of codes in the events. */
  readonly targets: ReadonlySet<string>;
}

class EventRecorder {
  readonly ids = new Map<string, number>();
  readonly targets = new Set<string>();

  hear(id: string, data: { target_url?: string } | undefined): void {
    this.ids.set(id, (this.ids.get(id) ?? 0) + 1);
    if (data?.target_url !== undefined) this.targets.add(data.target_url);
  }
}

/** Starts a webhook endpoint that answers 204 at once. */
export async function startWebhookReceiver(): Promise<ReceivedEvents & { readonly url: string }> {
  const recorder = new EventRecorder();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('error', () => undefined);
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { data } = JSON.parse(Buffer.concat(chunks).toString());
      recorder.hear(String(request.headers['webhook-id']), data);
      response.writeHead(204).end();
    });
  });
  server.listen(0, LOOPBACK);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return Object.assign(recorder, {
    url: `http://${LOOPBACK}:${port}/hook`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  });
}

/** Starts a consumer of the events topic, like the one in docs/events.md. */
export async function startEventConsumer(brokers: string): Promise<ReceivedEvents> {
  patchTimers();
  const recorder = new EventRecorder();
  const kafka = new kafkajs.Kafka({ brokers: brokers.split(','), logLevel: kafkajs.logLevel.NOTHING });
  let stopped = false;
  let consumer = kafka.consumer({ groupId: 'torture' });
  const run = async () => {
    await consumer.connect();
    await consumer.subscribe({ topic: EVENTS.name, fromBeginning: true });
    await consumer.run({
      async eachMessage({ message: { headers, value } }) {
        recorder.hear(String(headers?.ce_id), JSON.parse(String(value)));
      },
    });
  };
  /** On some failures kafkajs stops a consumer for good, and it is replaced. */
  const keepRunning = async () => {
    while (!stopped) {
      const crashed = new Promise<void>((resolve) => {
        consumer.on(consumer.events.CRASH, ({ payload }) => {
          if (!payload.restart) resolve();
        });
      });
      await run().then(
        () => crashed,
        () => undefined,
      );
      if (stopped) return;
      await consumer.disconnect().catch(() => undefined);
      await sleep(500);
      consumer = kafka.consumer({ groupId: 'torture' });
    }
  };
  keepRunning();
  return Object.assign(recorder, {
    async [Symbol.asyncDispose]() {
      stopped = true;
      await consumer.disconnect().catch(() => undefined);
    },
  });
}
