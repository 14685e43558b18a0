import { parentPort, type Transferable, Worker } from 'node:worker_threads';

/** What a thread sends back, in the order of what it was asked. */
type Reply<Answer> = { readonly answer: Answer } | { readonly error: unknown };

interface Awaited<Answer> {
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

/**
 * A thread for what would hold up the event loop. It is started with the first question and answers one at a time, in
 * their order. One that dies takes what it was asked with it; the next question starts another. It keeps no process
 * from ending that waits for no answer.
 *
 * `program`: a module that calls `answerInThread`. `task`: what it does, for the error of those whose thread has ended.
 */
export class Thread<Question, Answer> {
  readonly #program: URL;
  readonly #task: string;
  #running: { readonly thread: Worker; readonly awaited: Awaited<Answer>[] } | undefined;

  constructor(program: URL, task: string) {
    this.#program = program;
    this.#task = task;
  }

  /** `moved`: memory of the question's that goes over to the thread instead of being copied. */
  ask(question: Question, moved: readonly Transferable[] = []): Promise<Answer> {
    this.#running ??= this.#start();
    const { thread, awaited } = this.#running;
    return new Promise((resolve, reject) => {
      awaited.push({ resolve, reject });
      thread.ref();
      thread.postMessage(question, [...moved]);
    });
  }

  #start(): { thread: Worker; awaited: Awaited<Answer>[] } {
    const thread = new Worker(this.#program);
    const awaited: Awaited<Answer>[] = [];
    const running = { thread, awaited };
    let why: unknown = new Error(`the thread that ${this.#task} has ended`);
    thread.on('message', (reply: Reply<Answer>) => {
      const first = awaited.shift();
      if ('answer' in reply) first?.resolve(reply.answer);
      else first?.reject(reply.error);
      if (awaited.length === 0) thread.unref();
    });
    thread.on('error', (error) => {
      why = error;
    });
    thread.on('exit', () => {
      if (this.#running === running) this.#running = undefined;
      for (const { reject } of awaited) reject(why);
    });
    thread.unref();
    return running;
  }
}

/** Answers the questions of a `Thread`, of which this is the program. `moved`: memory of the answer's that goes over. */
export function answerInThread<Question, Answer>(
  answer: (question: Question) => Answer,
  moved: (answer: Answer) => readonly Transferable[] = () => [],
): void {
  parentPort?.on('message', (question: Question) => {
    try {
      const found = answer(question);
      parentPort?.postMessage({ answer: found } satisfies Reply<Answer>, [...moved(found)]);
    } catch (error) {
      parentPort?.postMessage({ error } satisfies Reply<Answer>);
    }
  });
}
