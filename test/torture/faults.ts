import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import { EVENTS, ROUTES, SCANS } from '../../common/log/topics.ts';
import type { TcpProxy } from '../harness/open-tcp-proxy.ts';
import type { Gateway } from './gateway-machine.ts';
import type { Ledger } from './ledger.ts';
import type { Platform } from './platform.ts';
import type { Random } from './random.ts';
import type { Supervised } from './supervised.ts';

export interface FaultContext {
  readonly platform: Platform;
  readonly ledger: Ledger;
  /** Of this injection's own. */
  readonly random: Random;
}

/** Takes a fault back; what was killed has been started again when it resolves, or will be by its supervisor. */
export type Heal = () => Promise<void> | void;

export interface Fault {
  readonly name: string;
  /** How long it stays, in s: the least and the most. */
  readonly lasts: readonly [number, number];
  /** Whether it needs disks whose power can be cut. */
  readonly cutsPower?: boolean;
  /** Undefined where it can't be injected here. */
  inject(context: FaultContext): Promise<Heal | undefined>;
}

const NOTHING: Heal = () => undefined;
/** A worker that hangs is killed by its gateway after 15 s. */
const STALL_MS = 6_000;

/** Sends a signal; the process may have ended meanwhile. */
function signal(pid: number | undefined, name: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(pid, name);
  } catch {
    // It has.
  }
}

function endGateway({ ledger }: FaultContext, { index }: Gateway): void {
  ledger.gatewayEnds.push({ gateway: index, at: Date.now() });
}

/** SIGKILL or SIGTERM for one of some processes; its supervisor starts it again. */
function ended(
  name: string,
  how: 'SIGKILL' | 'SIGTERM',
  of: (platform: Platform) => readonly Supervised[],
  lasts: Fault['lasts'] = [3, 6],
): Fault {
  return {
    name,
    lasts,
    async inject(context) {
      const process = context.random.oneOf(of(context.platform));
      const gateway = context.platform.gateways.find((each) => each.process === process);
      if (process.pid === undefined) return NOTHING;
      const gone = process.end(how);
      if (how === 'SIGKILL') await gone;
      return async () => {
        if (gateway) endGateway(context, gateway);
        await gone;
      };
    },
  };
}

/** SIGSTOP for one of some processes. */
function stopped(name: string, of: (platform: Platform) => readonly Supervised[], lasts: Fault['lasts']): Fault {
  return {
    name,
    lasts,
    async inject({ platform, random }) {
      const { pid } = random.oneOf(of(platform));
      signal(pid, 'SIGSTOP');
      return () => signal(pid, 'SIGCONT');
    },
  };
}

/** A signal for children of one gateway. */
function children(
  name: string,
  how: 'SIGKILL' | 'SIGSTOP',
  program: 'worker' | 'carrier',
  lasts: Fault['lasts'],
  all = false,
): Fault {
  return {
    name,
    lasts,
    async inject(context) {
      const gateway = context.random.oneOf(context.platform.gateways);
      if (gateway.process.pid === undefined) return NOTHING;
      const found = await gateway.children(program);
      if (found.length === 0) return NOTHING;
      const chosen = all ? found : [context.random.oneOf(found)];
      for (const pid of chosen) signal(pid, how);
      endGateway(context, gateway);
      const stop = { gateway: gateway.index, from: Date.now(), to: Number.POSITIVE_INFINITY };
      if (program === 'carrier') context.ledger.carrierStops.push(stop);
      return () => {
        stop.to = Date.now();
        endGateway(context, gateway);
        for (const pid of chosen) signal(pid, 'SIGCONT');
      };
    },
  };
}

/** What networks do: to one of some connections' proxies, or to all of them. */
function network(
  name: string,
  of: (platform: Platform) => readonly TcpProxy[],
  how: 'delay' | 'hang' | 'cut' | 'vanish',
  lasts: Fault['lasts'],
  postgres = false,
): Fault {
  return {
    name,
    lasts,
    async inject({ platform, random }) {
      const proxies = of(platform);
      const chosen = how === 'delay' || random.between(0, 1) === 1 ? proxies : [random.oneOf(proxies)];
      const settled = postgres ? platform.disturbPostgres() : NOTHING;
      const delay = random.between(100, 2_000);
      for (const proxy of chosen) {
        if (how === 'delay') proxy.delay(delay);
        else proxy[how]();
      }
      return () => {
        for (const proxy of chosen) {
          proxy.delay(0);
          proxy.restore();
          proxy.giveUp();
        }
        settled();
      };
    },
  };
}

function onPostgres(name: string, lasts: Fault['lasts'], inject: (context: FaultContext) => Promise<Heal>): Fault {
  return {
    name,
    lasts,
    async inject(context) {
      const settled = context.platform.disturbPostgres();
      const heal = await inject(context);
      return async () => {
        await heal();
        settled();
      };
    },
  };
}

const gatewayProcesses = ({ gateways }: Platform) => gateways.map((gateway) => gateway.process);
const cores = (platform: Platform) => platform.cores;
const backgroundCores = (platform: Platform) => platform.backgroundCores;
const toCores = ({ proxies }: Platform) => proxies.cores;
const toPostgres = ({ proxies }: Platform) => proxies.postgres;
const toKafka = ({ kafka }: Platform) => kafka.brokers.map(({ proxy }) => proxy);

/** SIGSTOP of all workers, SIGKILL of their gateway; they go on when its successor has started. */
const stalledWorkers: Fault = {
  name: 'workers stalled, gateway killed',
  lasts: [0, 0],
  async inject(context) {
    const gateway = context.random.oneOf(context.platform.gateways);
    if (gateway.process.pid === undefined) return NOTHING;
    const workers = await gateway.children('worker');
    for (const pid of workers) signal(pid, 'SIGSTOP');
    await gateway.process.end('SIGKILL');
    await gateway.process.ready();
    await sleep(STALL_MS);
    return () => {
      endGateway(context, gateway);
      for (const pid of workers) signal(pid, 'SIGCONT');
    };
  },
};

/** Kills every process of a gateway at once, as the kernel does when memory is short. */
const wholeGateway: Fault = {
  name: 'all of a gateway killed',
  lasts: [3, 6],
  async inject(context) {
    const gateway = context.random.oneOf(context.platform.gateways);
    const { pid } = gateway.process;
    if (pid === undefined) return NOTHING;
    for (const program of ['worker', 'carrier'] as const) {
      for (const child of await gateway.children(program)) signal(child, 'SIGKILL');
    }
    endGateway(context, gateway);
    await gateway.process.end('SIGKILL');
    return NOTHING;
  },
};

const diskFull: Fault = {
  name: 'disk of a gateway full',
  lasts: [5, 12],
  async inject({ platform, ledger, random }) {
    const gateway = random.oneOf(platform.gateways);
    const from = Date.now();
    const empty = await gateway.fillDisk();
    if (!empty) return undefined;
    return async () => {
      await empty();
      // What waits in memory is written within a second or two.
      await sleep(3_000);
      const to = Date.now();
      const hasEnded = ledger.gatewayEnds.some(({ gateway: index, at }) => index === gateway.index && at >= from);
      if (hasEnded) ledger.documentedLosses.push({ gateway: gateway.index, from, to, cutAt: to });
    };
  },
};

/**
 * How old scans may be that a power cut costs, in ms. The documentation says a second; all processes of this platform
 * share a machine, on which a carrier may be late.
 */
const POWER_CUT_MS = 4_000;

const gatewayPowerCut: Fault = {
  name: 'power of a gateway cut',
  lasts: [2, 5],
  cutsPower: true,
  async inject(context) {
    const { ledger, platform, random } = context;
    const gateway = random.oneOf(platform.gateways);
    endGateway(context, gateway);
    const { cutAt, restore } = await gateway.cutPower();
    // Meanwhile nothing was forced to disk.
    const stops = ledger.carrierStops.filter(
      (stop) => stop.gateway === gateway.index && stop.to >= cutAt - POWER_CUT_MS,
    );
    const from = Math.min(cutAt, ...stops.map((stop) => stop.from)) - POWER_CUT_MS;
    ledger.documentedLosses.push({ gateway: gateway.index, from, to: Date.now(), cutAt });
    return restore;
  },
};

const topicDeleted: Fault = {
  name: 'topic deleted',
  lasts: [3, 6],
  async inject({ platform, random }) {
    const topic = random.oneOf([EVENTS, ROUTES, SCANS]).name;
    const since = new Date(Date.now() - 3_600_000).toISOString();
    const kafka = new kafkajs.Kafka({ brokers: platform.kafka.direct.split(','), logLevel: kafkajs.logLevel.NOTHING });
    const admin = kafka.admin();
    await admin.connect();
    await admin.deleteTopics({ topics: [topic] });
    return async () => {
      // As docs/operating.md tells the operator, once the topic is there again.
      await untilDone(async () => {
        if (!(await admin.listTopics()).includes(topic)) throw new Error(`${topic} is not created again.`);
      });
      await admin.disconnect();
      for (const gateway of platform.gateways) {
        await untilDone(() => platform.operator(['scans', 'reship', '--since', since], gateway));
      }
      await untilDone(() => platform.operator(['events', 'republish']));
    };
  },
};

/** An operator tries again while something else is still away, for a minute. */
async function untilDone(command: () => Promise<unknown>): Promise<void> {
  for (let left = 20; ; left--) {
    try {
      await command();
      return;
    } catch (error) {
      if (left === 0) throw error;
      await sleep(3_000);
    }
  }
}

/** Every fault, each by a name of its own. */
export const FAULTS: readonly Fault[] = [
  ended('gateway killed', 'SIGKILL', gatewayProcesses),
  wholeGateway,
  children('worker killed', 'SIGKILL', 'worker', [2, 4]),
  children('carrier killed', 'SIGKILL', 'carrier', [2, 4]),
  ended('core killed', 'SIGKILL', cores),
  ended('background core killed', 'SIGKILL', backgroundCores),
  ended('gateway SIGTERM', 'SIGTERM', gatewayProcesses),
  ended('core SIGTERM', 'SIGTERM', cores),
  ended('background core SIGTERM', 'SIGTERM', backgroundCores),
  children('worker stopped', 'SIGSTOP', 'worker', [3, 18]),
  children('all workers stopped', 'SIGSTOP', 'worker', [3, 10], true),
  children('carrier stopped', 'SIGSTOP', 'carrier', [3, 18]),
  stopped('gateway stopped', gatewayProcesses, [3, 18]),
  stopped('core stopped', cores, [3, 20]),
  stopped('background core stopped', backgroundCores, [3, 20]),
  stalledWorkers,
  onPostgres('Postgres killed', [2, 5], async ({ platform }) => {
    await platform.postgres.kill();
    return () => platform.postgres.start();
  }),
  {
    ...onPostgres('power of Postgres cut', [2, 5], async ({ platform }) => {
      await platform.postgres.cutPower();
      return () => platform.postgres.start();
    }),
    cutsPower: true,
  },
  onPostgres('Postgres backend killed', [2, 4], async ({ platform, random }) => {
    await platform.postgres.killBackend(random);
    return NOTHING;
  }),
  onPostgres('Postgres SIGTERM', [2, 5], async ({ platform }) => {
    await platform.postgres.stop();
    return () => platform.postgres.start();
  }),
  onPostgres('Postgres stopped', [3, 12], ({ platform }) => platform.postgres.pause()),
  {
    name: 'broker killed',
    lasts: [3, 8],
    async inject({ platform, random }) {
      const broker = random.oneOf(platform.kafka.brokers);
      await broker.kill();
      return () => broker.start();
    },
  },
  {
    name: 'power of a broker cut',
    lasts: [2, 5],
    cutsPower: true,
    async inject({ platform, random }) {
      const broker = random.oneOf(platform.kafka.brokers);
      await broker.cutPower();
      return () => broker.start();
    },
  },
  {
    name: 'broker SIGTERM',
    lasts: [3, 8],
    async inject({ platform, random }) {
      const broker = random.oneOf(platform.kafka.brokers);
      const gone = broker.kill('SIGTERM');
      return async () => {
        await gone;
        await broker.start();
      };
    },
  },
  {
    name: 'broker stopped',
    lasts: [3, 15],
    async inject({ platform, random }) {
      const broker = random.oneOf(platform.kafka.brokers);
      broker.pause();
      return () => broker.resume();
    },
  },
  network('gateway–core delayed', toCores, 'delay', [3, 8]),
  network('gateway–core hanging', toCores, 'hang', [3, 20]),
  network('gateway–core cut', toCores, 'cut', [2, 5]),
  network('core machine vanishes', toCores, 'vanish', [2, 4]),
  network('Postgres delayed', toPostgres, 'delay', [3, 8], true),
  network('Postgres hanging', toPostgres, 'hang', [3, 15], true),
  network('Postgres cut', toPostgres, 'cut', [2, 5], true),
  network('Postgres machine vanishes', toPostgres, 'vanish', [2, 4], true),
  network('Kafka delayed', toKafka, 'delay', [3, 8]),
  network('Kafka hanging', toKafka, 'hang', [3, 15]),
  network('Kafka cut', toKafka, 'cut', [2, 5]),
  diskFull,
  gatewayPowerCut,
  topicDeleted,
];
