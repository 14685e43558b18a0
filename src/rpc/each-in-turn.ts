/** Passes on the messages of a stream; each is made in a turn of its own, which ends before the message is sent. */
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
