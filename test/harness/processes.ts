import { inject } from 'vitest';
import type { LocalCore } from '../../local/core.ts';
import { createAccount, type NewAccount } from '../../local/create-account.ts';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { afterFile } from './after-file.ts';
import { freshDatabase } from './database.ts';
import { startProcesses } from './start-processes.ts';

export interface SignpostOptions {
  /** Default: a new database. */
  readonly databaseUrl?: string;
  /** The same database for gateways. Default: with the gateway role, if the server has it. */
  readonly gatewayDatabaseUrl?: string;
  /** Default: none, so the log is in Postgres. */
  readonly kafkaBrokers?: string;
  /**
   * Number of gateways; default 1, and 0 for tests of the core alone. Gateway n calls core n, or the last one, unless
   * `coresCalled` is set.
   */
  readonly gateways?: number;
  /** Number of cores; default 1. */
  readonly cores?: number;
  /** Every gateway calls this many cores, the first ones. */
  readonly coresCalled?: number;
  /** `ROLES` of each core; default: all. */
  readonly roles?: readonly string[];
  /** Variables for all processes, overriding those of the harness. */
  readonly env?: Readonly<Record<string, string>>;
  /** Variables for gateways, overriding `env`. */
  readonly gatewayEnv?: Readonly<Record<string, string>>;
}

/** A process of Signpost that a test may kill and restart at the same address. */
export interface Process {
  readonly pid: number;
  /** Resolves when the current process has exited, with how it ended. */
  readonly ended: Promise<string>;
  /** Its address: REST and scans of a gateway, Connect of a core. */
  readonly url: string;
  /** Default: SIGKILL. Resolves when it has exited. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Restarts it, killing it first if it still runs; resolves when it is ready. */
  restart(): Promise<void>;
  /** Its complete output. */
  log(): Promise<string>;
}

/** What files of tests may use of a Signpost that they share: each has accounts of its own. */
export interface SharedSignpost {
  /** Address of the first gateway, also if there is none, and start of scan URLs. */
  readonly url: string;
  /** Port of the first core. */
  readonly corePort: number;
  readonly serviceToken: string;
  readonly databaseUrl: string;
  readonly gateways: readonly Pick<Process, 'url'>[];
  createAccount(account?: Partial<Parameters<typeof createAccount>[1]>): Promise<NewAccount>;
}

/** A complete Signpost of real processes, stopped at the latest after the calling file's tests. */
export interface Signpost extends SharedSignpost {
  /** Port of the first core. */
  readonly grpcPort: number;
  /** `CORE_ADDRESS` of the first gateway. */
  readonly coreAddress: string;
  /** Contains a folder per gateway and the logs. */
  readonly dataDir: string;
  readonly cores: readonly Process[];
  readonly gateways: readonly Process[];
  stop(): Promise<void>;
}

/** Starts the real programs on free ports; resolves when all are ready. */
export async function startSignpost(options: SignpostOptions = {}): Promise<Signpost> {
  const databaseUrl = options.databaseUrl ?? (await freshDatabase()).url;
  const gatewayDatabaseUrl = options.gatewayDatabaseUrl ?? asGateway(databaseUrl);
  return withAccounts(await startProcesses({ ...options, databaseUrl, gatewayDatabaseUrl }, afterFile));
}

/**
 * The Signpost that all files of a run share which neither disturb it nor look at more than their accounts have. It
 * starts when the first one asks for it, and its processes have the default options.
 */
export async function sharedSignpost(): Promise<SharedSignpost> {
  const answer = await fetch(inject('sharedSignpost'));
  if (!answer.ok) throw new Error(await answer.text());
  return withAccounts((await answer.json()) as Omit<SharedSignpost, 'createAccount'>);
}

function withAccounts<Running extends LocalCore>(running: Running): Running & Pick<SharedSignpost, 'createAccount'> {
  return {
    ...running,
    createAccount: (account) => createAccount(running, { name: 'Test', plan: Plan.BUSINESS, ...account }),
  };
}

/** The database URL with the gateway role, if the server has it. */
function asGateway(databaseUrl: string): string {
  const gatewayUrl = inject('gatewayUrl');
  if (gatewayUrl === null) return databaseUrl;
  const url = new URL(gatewayUrl);
  url.pathname = new URL(databaseUrl).pathname;
  return url.href;
}
