import { parentPort, type Transferable, Worker } from 'node:worker_threads';

/** A reply of a thread; replies are in the order of the requests. */
type Reply<Result> = { readonly result: Result } | { readonly error: unknown };

interface PendingRequest<Result> {
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/**
 * A worker thread for work that would block the event loop. It is started with the first request and handles requests
 * one at a time, in order. If it dies, pending requests are rejected and the next one starts a new thread. It keeps the
 * process alive only while requests are pending.
 *
 * `program`: a module that calls `handleThreadRequests`. `task`: what it does, for the error when the thread has ended.
 */
export class Thread<Request, Result> {
  readonly #program: URL;
  readonly #task: string;
  #running: { readonly thread: Worker; readonly pending: PendingRequest<Result>[] } | undefined;

  constructor(program: URL, task: string) {
    this.#program = program;
    this.#task = task;
  }

  /** `transfer`: buffers of the request that are transferred to the thread instead of being copied. */
  run(request: Request, transfer: readonly Transferable[] = []): Promise<Result> {
    this.#running ??= this.#start();
    const { thread, pending } = this.#running;
    return new Promise((resolve, reject) => {
      // Throws if the request can't be cloned: there will be no reply.
      thread.postMessage(request, [...transfer]);
      pending.push({ resolve, reject });
      thread.ref();
    });
  }

  #start(): { thread: Worker; pending: PendingRequest<Result>[] } {
    const thread = new Worker(this.#program);
    const pending: PendingRequest<Result>[] = [];
    const running = { thread, pending };
    let failure: unknown = new Error(`the thread that ${this.#task} has ended`);
    thread.on('message', (reply: Reply<Result>) => {
      const first = pending.shift();
      if ('result' in reply) first?.resolve(reply.result);
      else first?.reject(reply.error);
      if (pending.length === 0) thread.unref();
    });
    thread.on('error', (error) => {
      failure = error;
    });
    thread.on('exit', () => {
      if (this.#running === running) this.#running = undefined;
      for (const { reject } of pending) reject(failure);
    });
    thread.unref();
    return running;
  }
}

/**
 * Handles the requests of a `Thread` in its program. `transfer`: buffers of the result that are transferred, not
 * copied.
 */
export function handleThreadRequests<Request, Result>(
  handle: (request: Request) => Result,
  transfer: (result: Result) => readonly Transferable[] = () => [],
): void {
  parentPort?.on('message', (request: Request) => {
    try {
      const result = handle(request);
      parentPort?.postMessage({ result } satisfies Reply<Result>, [...transfer(result)]);
    } catch (error) {
      parentPort?.postMessage({ error } satisfies Reply<Result>);
    }
  });
}
