/** Runs pieces of work one after the other, in the order of the calls, even after one has failed. */
export function oneAtATime(): <Result>(work: () => Promise<Result>) => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const result = last.then(work);
    last = result.catch(() => undefined);
    return result;
  };
}

/** Does work whose turn lasts until it has been reverted by the function that it returns. */
export function untilReverted(
  inTurn: ReturnType<typeof oneAtATime>,
  work: () => Promise<() => Promise<void>>,
): Promise<() => Promise<void>> {
  const done = Promise.withResolvers<() => Promise<void>>();
  const turn = inTurn(async () => {
    const reverted = Promise.withResolvers<void>();
    const revert = await work();
    done.resolve(async () => {
      await revert().finally(reverted.resolve);
    });
    await reverted.promise;
  });
  turn.catch(done.reject);
  return done.promise;
}
