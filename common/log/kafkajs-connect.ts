import { createRequire } from 'node:module';

interface Broker {
  disconnect(): Promise<void>;
}

interface BrokerClass {
  prototype: { connect(this: Broker): Promise<void> };
}

const MENDED = Symbol.for('signpost.kafkajs.connect');

/**
 * kafkajs 2.2.4 keeps the connection to a broker that took it and then did not say which versions it speaks, and takes
 * it for a good one from then on: every request fails with "Broker not connected", for ever, also once the broker
 * answers again. A connection that could not be opened to the end is closed here, so that the next try opens another.
 */
export function mendConnect(): void {
  const { prototype } = createRequire(import.meta.url)('kafkajs/src/broker') as BrokerClass;
  if (Object.hasOwn(prototype, MENDED)) return;
  const connect = prototype.connect;
  prototype.connect = async function (this: Broker) {
    try {
      await connect.call(this);
    } catch (error) {
      await this.disconnect();
      throw error;
    }
  };
  Object.defineProperty(prototype, MENDED, { value: true });
}
