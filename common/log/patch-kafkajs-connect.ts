import { createRequire } from 'node:module';

interface Broker {
  disconnect(): Promise<void>;
}

interface BrokerClass {
  prototype: { connect(this: Broker): Promise<void> };
}

const PATCHED = Symbol.for('signpost.kafkajs.connect');

/**
 * If a broker accepts a connection but does not answer the version request, kafkajs 2.2.4 keeps that connection and
 * treats it as usable: every request then fails with "Broker not connected", for ever, even once the broker answers
 * again. This patch closes a connection whose handshake failed, so that the next attempt opens a new one.
 */
export function patchConnect(): void {
  const { prototype } = createRequire(import.meta.url)('kafkajs/src/broker') as BrokerClass;
  if (Object.hasOwn(prototype, PATCHED)) return;
  const connect = prototype.connect;
  prototype.connect = async function (this: Broker) {
    try {
      await connect.call(this);
    } catch (error) {
      await this.disconnect();
      throw error;
    }
  };
  Object.defineProperty(prototype, PATCHED, { value: true });
}
