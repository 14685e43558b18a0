/** Forwards the messages of a stream. A slot of the queue is taken for producing each one, and not for sending it. */
export async function* eachInTurn<Message>(
  messages: AsyncIterable<Message>,
  inTurn: <Result>(work: () => Promise<Result>) => Promise<Result>,
): AsyncGenerator<Message> {
  const iterator = messages[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await inTurn(() => iterator.next());
      if (next.done) return;
      yield next.value;
    }
  } finally {
    await iterator.return?.();
  }
}
