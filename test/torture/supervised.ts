import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Child, type ChildOptions, startChild } from '../../local/child.ts';

/** How long a supervisor waits before it restarts a process, in ms. */
const RESTART_MS = 1_000;
const READY_WITHIN_MS = 120_000;
/** How long a process may take to stop after SIGTERM, in ms. */
const STOP_MS = 30_000;

/** An exit of a process that was not requested, or one without its last log line. */
export interface Accident {
  readonly process: string;
  readonly at: number;
  /** How it exited, and the last lines of its log. */
  readonly how: string;
}

export interface SupervisedOptions extends ChildOptions {
  readonly accident: (accident: Accident) => void;
  /** Whether a start may fail at the moment, as a core's does while Postgres is unavailable. */
  readonly mayFailToStart: () => boolean;
}

/** A program that is restarted whenever it exits, as systemd does. */
export class Supervised {
  readonly name: string;
  readonly #options: SupervisedOptions;
  #child: Child | undefined;
  #ready = Promise.withResolvers<Child>();
  #requestedSignal: NodeJS.Signals | undefined;
  #stopping = false;
  /** Resolves when the machine's power returns; undefined while it has power. */
  #power: Promise<void> | undefined;
  #waitsForPower = false;
  readonly #running: Promise<void>;

  constructor(options: SupervisedOptions) {
    this.name = options.name;
    this.#options = options;
    this.#running = this.#supervise();
  }

  /** Resolves with the process once one is running and ready. */
  async ready(): Promise<Child> {
    if (this.#child) return this.#child;
    const late = sleep(READY_WITHIN_MS, undefined, { ref: false }).then(() => {
      throw new Error(`The ${this.name} was not ready within ${READY_WITHIN_MS / 1_000} s.`);
    });
    return Promise.race([this.#ready.promise, late]);
  }

  /** The id of the running process; undefined while there is none. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Signals the process, which is then replaced. Resolves when it has exited. */
  async end(signal: NodeJS.Signals): Promise<void> {
    const child = await this.ready();
    this.#requestedSignal = signal;
    const ended = child.stop(signal).then(() => true);
    const late = sleep(STOP_MS, false, { ref: false });
    if (signal === 'SIGTERM' && !(await Promise.race([ended, late]))) {
      this.#accident(`It had not stopped ${STOP_MS / 1_000} s after SIGTERM. ${await this.#tail()}`);
      await child.stop('SIGKILL');
    }
    await ended;
  }

  /**
   * Cuts the power of its machine: `kill` kills all processes there, and none is started until the function that this
   * returns is called.
   */
  async powerOff(kill: () => Promise<void>): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#power = promise;
    // Repeated, as a start may have been in progress.
    do {
      await kill();
      await sleep(10);
    } while (!this.#waitsForPower);
    return () => {
      this.#power = undefined;
      resolve();
    };
  }

  /** Stops the process without restarting it. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#requestedSignal ??= 'SIGTERM';
    await this.#child?.stop('SIGTERM');
    await this.#running;
  }

  async #supervise(): Promise<void> {
    while (!this.#stopping) {
      this.#waitsForPower = true;
      await this.#power;
      this.#waitsForPower = false;
      try {
        const child = await startChild(this.#options);
        this.#requestedSignal = undefined;
        this.#child = child;
        this.#ready.resolve(child);
        const how = await child.ended;
        this.#child = undefined;
        this.#ready = Promise.withResolvers();
        if (this.#requestedSignal === undefined) this.#accident(how);
        else if (
          this.#requestedSignal === 'SIGTERM' &&
          !(/ended with code 0\./.test(how) && how.includes('has stopped'))
        ) {
          this.#accident(`After SIGTERM: ${how}`);
        }
      } catch (error) {
        if (!this.#options.mayFailToStart()) this.#accident(`It did not start: ${(error as Error).message}`);
      }
      if (!this.#stopping) await sleep(RESTART_MS);
    }
  }

  #accident(how: string): void {
    if (this.#power) return;
    this.#options.accident({ process: this.name, at: Date.now(), how });
  }

  async #tail(): Promise<string> {
    const log = await readFile(this.#options.log, 'utf8');
    return log.trimEnd().split('\n').slice(-8).join('\n');
  }
}
