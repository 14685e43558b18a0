import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Child, type ChildOptions, startChild } from '../../local/child.ts';

/** How long a supervisor waits before it starts again what has ended, in ms. */
const RESTART_MS = 1_000;
const READY_WITHIN_MS = 120_000;
/** How long a process may take after SIGTERM. */
const STOP_MS = 30_000;

/** An end of a process that nobody asked for, or one without its last line. */
export interface Accident {
  readonly process: string;
  readonly at: number;
  /** How it ended, and the last lines of its log. */
  readonly how: string;
}

export interface SupervisedOptions extends ChildOptions {
  readonly accident: (accident: Accident) => void;
  /** Whether a start may fail now with a sentence, as a core's does while Postgres is unavailable. */
  readonly mayFailToStart: () => boolean;
}

/** A program that is started again whenever it ends, as systemd and others do. */
export class Supervised {
  readonly name: string;
  readonly #options: SupervisedOptions;
  #child: Child | undefined;
  #ready = Promise.withResolvers<Child>();
  #asked: NodeJS.Signals | undefined;
  #over = false;
  /** Resolves when the machine has power again; undefined while it has. */
  #power: Promise<void> | undefined;
  #waitsForPower = false;
  readonly #running: Promise<void>;

  constructor(options: SupervisedOptions) {
    this.name = options.name;
    this.#options = options;
    this.#running = this.#supervise();
  }

  /** The process that runs and is ready, as soon as there is one. */
  async ready(): Promise<Child> {
    if (this.#child) return this.#child;
    const late = sleep(READY_WITHIN_MS, undefined, { ref: false }).then(() => {
      throw new Error(`The ${this.name} was not ready within ${READY_WITHIN_MS / 1_000} s.`);
    });
    return Promise.race([this.#ready.promise, late]);
  }

  /** The process that runs now; undefined while there is none. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Ends the process; another one takes its place. Resolves when it is gone. */
  async end(signal: NodeJS.Signals): Promise<void> {
    const child = await this.ready();
    this.#asked = signal;
    const ended = child.stop(signal).then(() => true);
    const late = sleep(STOP_MS, false, { ref: false });
    if (signal === 'SIGTERM' && !(await Promise.race([ended, late]))) {
      this.#accident(`It had not stopped ${STOP_MS / 1_000} s after SIGTERM. ${await this.#tail()}`);
      await child.stop('SIGKILL');
    }
    await ended;
  }

  /**
   * Cuts the power of its machine: `kill` ends all processes there, and none is started until the function that this
   * returns is called.
   */
  async powerOff(kill: () => Promise<void>): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#power = promise;
    // Again, as a start may have been under way.
    do {
      await kill();
      await sleep(10);
    } while (!this.#waitsForPower);
    return () => {
      this.#power = undefined;
      resolve();
    };
  }

  /** Ends it for good. */
  async stop(): Promise<void> {
    this.#over = true;
    this.#asked ??= 'SIGTERM';
    await this.#child?.stop('SIGTERM');
    await this.#running;
  }

  async #supervise(): Promise<void> {
    while (!this.#over) {
      this.#waitsForPower = true;
      await this.#power;
      this.#waitsForPower = false;
      try {
        const child = await startChild(this.#options);
        this.#asked = undefined;
        this.#child = child;
        this.#ready.resolve(child);
        const how = await child.ended;
        this.#child = undefined;
        this.#ready = Promise.withResolvers();
        if (this.#asked === undefined) this.#accident(how);
        else if (this.#asked === 'SIGTERM' && !(/ended with code 0\./.test(how) && how.includes('has stopped'))) {
          this.#accident(`After SIGTERM: ${how}`);
        }
      } catch (error) {
        if (!this.#options.mayFailToStart()) this.#accident(`It did not start: ${(error as Error).message}`);
      }
      if (!this.#over) await sleep(RESTART_MS);
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
