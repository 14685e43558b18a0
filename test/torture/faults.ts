import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import { EVENTS, ROUTES, SCANS } from '../../common/log/topics.ts';
import type { Random } from '../../local/sample/random.ts';
import type { TcpProxy } from '../harness/open-tcp-proxy.ts';
import type { Gateway } from './gateway-machine.ts';
import type { Ledger } from './ledger.ts';
import type { Platform } from './platform.ts';
import type { Supervised } from './supervised.ts';

export interface FaultContext {
  readonly platform: Platform;
  readonly ledger: Ledger;
  /** The generator of this injection. */
  readonly random: Random;
}

/** Reverts a fault. Killed processes have been restarted when it resolves, or will be by their supervisor. */
export type Heal = () => Promise<void> | void;

export interface Fault {
  readonly name: string;
  /** The minimum and maximum duration, in s. */
  readonly durationRange: readonly [number, number];
  /** Whether each gateway, Postgres and each broker need a `PowerCutDisk` for it. */
  readonly needsDisks?: boolean;
  /** Returns undefined if the fault can't be injected here. */
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
    // The process has ended.
  }
}

function recordGatewayEnd({ ledger }: FaultContext, { index }: Gateway): void {
  ledger.gatewayEnds.push({ gateway: index, at: Date.now() });
}

/** SIGKILL or SIGTERM for a random process; its supervisor restarts it. */
function endFault(
  name: string,
  action: 'SIGKILL' | 'SIGTERM',
  of: (platform: Platform) => readonly Supervised[],
  durationRange: Fault['durationRange'] = [3, 6],
): Fault {
  return {
    name,
    durationRange,
    async inject(context) {
      const process = context.random.oneOf(of(context.platform));
      const gateway = context.platform.gateways.find((each) => each.process === process);
      if (process.pid === undefined) return NOTHING;
      const gone = process.end(action);
      if (action === 'SIGKILL') await gone;
      return async () => {
        if (gateway) recordGatewayEnd(context, gateway);
        await gone;
      };
    },
  };
}

/** SIGSTOP for a random process. */
function stopFault(
  name: string,
  of: (platform: Platform) => readonly Supervised[],
  durationRange: Fault['durationRange'],
): Fault {
  return {
    name,
    durationRange,
    async inject({ platform, random }) {
      const { pid } = random.oneOf(of(platform));
      signal(pid, 'SIGSTOP');
      return () => signal(pid, 'SIGCONT');
    },
  };
}

/** A signal for one or all children of a random gateway that run `program`. */
function children(
  name: string,
  action: 'SIGKILL' | 'SIGSTOP',
  program: 'worker' | 'carrier',
  durationRange: Fault['durationRange'],
  all = false,
): Fault {
  return {
    name,
    durationRange,
    async inject(context) {
      const gateway = context.random.oneOf(context.platform.gateways);
      if (gateway.process.pid === undefined) return NOTHING;
      const found = await gateway.children(program);
      if (found.length === 0) return NOTHING;
      const chosen = all ? found : [context.random.oneOf(found)];
      for (const pid of chosen) signal(pid, action);
      recordGatewayEnd(context, gateway);
      const stop = { gateway: gateway.index, from: Date.now(), to: Number.POSITIVE_INFINITY };
      if (program === 'carrier') context.ledger.carrierStops.push(stop);
      return () => {
        stop.to = Date.now();
        recordGatewayEnd(context, gateway);
        for (const pid of chosen) signal(pid, 'SIGCONT');
      };
    },
  };
}

/** A network fault of one or all proxies. */
function networkFault(
  name: string,
  of: (platform: Platform) => readonly TcpProxy[],
  action: 'delay' | 'hang' | 'cut' | 'vanish',
  durationRange: Fault['durationRange'],
  postgres = false,
): Fault {
  return {
    name,
    durationRange,
    async inject({ platform, random }) {
      const proxies = of(platform);
      const chosen = action === 'delay' || random.between(0, 1) === 1 ? proxies : [random.oneOf(proxies)];
      const endDisturbance = postgres ? platform.disturbPostgres() : NOTHING;
      const delay = random.between(100, 2_000);
      for (const proxy of chosen) {
        if (action === 'delay') proxy.delay(delay);
        else proxy[action]();
      }
      return () => {
        for (const proxy of chosen) {
          proxy.delay(0);
          proxy.restore();
          proxy.giveUp();
        }
        endDisturbance();
      };
    },
  };
}

function postgresFault(
  name: string,
  durationRange: Fault['durationRange'],
  inject: (context: FaultContext) => Promise<Heal>,
): Fault {
  return {
    name,
    durationRange,
    async inject(context) {
      const endDisturbance = context.platform.disturbPostgres();
      const heal = await inject(context);
      return async () => {
        await heal();
        endDisturbance();
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

/** SIGSTOP of all workers and SIGKILL of their gateway; the workers resume after its successor has started. */
const stalledWorkers: Fault = {
  name: 'workers stalled, gateway killed',
  durationRange: [0, 0],
  async inject(context) {
    const gateway = context.random.oneOf(context.platform.gateways);
    if (gateway.process.pid === undefined) return NOTHING;
    const workers = await gateway.children('worker');
    for (const pid of workers) signal(pid, 'SIGSTOP');
    await gateway.process.end('SIGKILL');
    await gateway.process.ready();
    await sleep(STALL_MS);
    return () => {
      recordGatewayEnd(context, gateway);
      for (const pid of workers) signal(pid, 'SIGCONT');
    };
  },
};

/** Kills all processes of a gateway at once, as the kernel does when memory runs out. */
const wholeGateway: Fault = {
  name: 'all of a gateway killed',
  durationRange: [3, 6],
  async inject(context) {
    const gateway = context.random.oneOf(context.platform.gateways);
    const { pid } = gateway.process;
    if (pid === undefined) return NOTHING;
    for (const program of ['worker', 'carrier'] as const) {
      for (const child of await gateway.children(program)) signal(child, 'SIGKILL');
    }
    recordGatewayEnd(context, gateway);
    await gateway.process.end('SIGKILL');
    return NOTHING;
  },
};

const diskFull: Fault = {
  name: 'disk of a gateway full',
  durationRange: [5, 12],
  async inject({ platform, ledger, random }) {
    const gateway = random.oneOf(platform.gateways);
    const from = Date.now();
    const empty = await gateway.fillDisk();
    if (!empty) return undefined;
    return async () => {
      await empty();
      // Scans held in memory are written within a second or two.
      await sleep(3_000);
      const to = Date.now();
      const hasEnded = ledger.gatewayEnds.some(({ gateway: index, at }) => index === gateway.index && at >= from);
      if (hasEnded) ledger.documentedLosses.push({ gateway: gateway.index, from, to, cutAt: to });
    };
  },
};

/**
 * The maximum age of scans that a power cut loses, in ms. The documentation says a second; all processes of this
 * platform share a machine, so a carrier may be delayed.
 */
const POWER_CUT_MS = 4_000;

const gatewayPowerCut: Fault = {
  name: 'power of a gateway cut',
  durationRange: [2, 5],
  needsDisks: true,
  async inject(context) {
    const { ledger, platform, random } = context;
    const gateway = random.oneOf(platform.gateways);
    recordGatewayEnd(context, gateway);
    const { cutAt, restore } = await gateway.cutPower();
    // While the carrier was stopped, nothing was synced to disk.
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
  durationRange: [3, 6],
  async inject({ platform, random }) {
    const topic = random.oneOf([EVENTS, ROUTES, SCANS]).name;
    const since = new Date(Date.now() - 3_600_000).toISOString();
    const kafka = new kafkajs.Kafka({ brokers: platform.kafka.direct.split(','), logLevel: kafkajs.logLevel.NOTHING });
    const admin = kafka.admin();
    await admin.connect();
    await admin.deleteTopics({ topics: [topic] });
    return async () => {
      // The operator's steps in docs/operating/outages.md, once the topic exists again.
      await retry(async () => {
        if (!(await admin.listTopics()).includes(topic)) throw new Error(`${topic} has not been recreated.`);
      });
      await admin.disconnect();
      for (const gateway of platform.gateways) {
        await retry(() => platform.operator(['scans', 'reship', '--since', since], gateway));
      }
      await retry(() => platform.operator(['events', 'republish']));
    };
  },
};

/** Retries for a minute, as an operator would while something else is still unavailable. */
async function retry(command: () => Promise<unknown>): Promise<void> {
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

/** All faults; their names are unique. */
export const FAULTS: readonly Fault[] = [
  endFault('gateway killed', 'SIGKILL', gatewayProcesses),
  wholeGateway,
  children('worker killed', 'SIGKILL', 'worker', [2, 4]),
  children('carrier killed', 'SIGKILL', 'carrier', [2, 4]),
  endFault('core killed', 'SIGKILL', cores),
  endFault('background core killed', 'SIGKILL', backgroundCores),
  endFault('gateway SIGTERM', 'SIGTERM', gatewayProcesses),
  endFault('core SIGTERM', 'SIGTERM', cores),
  endFault('background core SIGTERM', 'SIGTERM', backgroundCores),
  children('worker stopped', 'SIGSTOP', 'worker', [3, 18]),
  children('all workers stopped', 'SIGSTOP', 'worker', [3, 10], true),
  children('carrier stopped', 'SIGSTOP', 'carrier', [3, 18]),
  stopFault('gateway stopped', gatewayProcesses, [3, 18]),
  stopFault('core stopped', cores, [3, 20]),
  stopFault('background core stopped', backgroundCores, [3, 20]),
  stalledWorkers,
  postgresFault('Postgres killed', [2, 5], async ({ platform }) => {
    await platform.postgres.kill();
    return () => platform.postgres.start();
  }),
  {
    ...postgresFault('power of Postgres cut', [2, 5], async ({ platform }) => {
      await platform.postgres.cutPower();
      return () => platform.postgres.start();
    }),
    needsDisks: true,
  },
  {
    ...postgresFault('disk of Postgres full', [5, 15], ({ platform }) => platform.postgres.fillDisk()),
    needsDisks: true,
  },
  {
    ...postgresFault('disk of Postgres fails', [3, 8], ({ platform }) => platform.postgres.breakDisk()),
    needsDisks: true,
  },
  postgresFault('Postgres backend killed', [2, 4], async ({ platform, random }) => {
    await platform.postgres.killBackend(random);
    return NOTHING;
  }),
  postgresFault('Postgres SIGTERM', [2, 5], async ({ platform }) => {
    await platform.postgres.stop();
    return () => platform.postgres.start();
  }),
  postgresFault('Postgres stopped', [3, 12], ({ platform }) => platform.postgres.pause()),
  {
    name: 'broker killed',
    durationRange: [3, 8],
    async inject({ platform, random }) {
      const broker = random.oneOf(platform.kafka.brokers);
      await broker.kill();
      return () => broker.start();
    },
  },
  {
    name: 'power of a broker cut',
    durationRange: [2, 5],
    needsDisks: true,
    async inject({ platform, random }) {
      const broker = random.oneOf(platform.kafka.brokers);
      await broker.cutPower();
      return () => broker.start();
    },
  },
  {
    name: 'disk of a broker full',
    durationRange: [5, 15],
    needsDisks: true,
    inject: ({ platform, random }) => random.oneOf(platform.kafka.brokers).fillDisk(),
  },
  {
    name: 'broker SIGTERM',
    durationRange: [3, 8],
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
    durationRange: [3, 15],
    async inject({ platform, random }) {
      const broker = random.oneOf(platform.kafka.brokers);
      broker.pause();
      return () => broker.resume();
    },
  },
  networkFault('gateway–core delayed', toCores, 'delay', [3, 8]),
  networkFault('gateway–core hanging', toCores, 'hang', [3, 20]),
  networkFault('gateway–core cut', toCores, 'cut', [2, 5]),
  networkFault('core machine vanishes', toCores, 'vanish', [2, 4]),
  networkFault('Postgres delayed', toPostgres, 'delay', [3, 8], true),
  networkFault('Postgres hanging', toPostgres, 'hang', [3, 15], true),
  networkFault('Postgres cut', toPostgres, 'cut', [2, 5], true),
  networkFault('Postgres machine vanishes', toPostgres, 'vanish', [2, 4], true),
  networkFault('Kafka delayed', toKafka, 'delay', [3, 8]),
  networkFault('Kafka hanging', toKafka, 'hang', [3, 15]),
  networkFault('Kafka cut', toKafka, 'cut', [2, 5]),
  diskFull,
  gatewayPowerCut,
  topicDeleted,
];
