import { type Random, randomFrom } from '../../local/sample/random.ts';
import type { Fault } from './faults.ts';

/** Faults that are injected together, each with its duration and its source of random choices. */
export interface Injection {
  readonly name: string;
  readonly faults: readonly { readonly fault: Fault; readonly seconds: number; readonly random: Random }[];
  /** The delay between the first and the second fault, in ms. */
  readonly apartMs: number;
}

/** Every third injection consists of two faults. */
const DOUBLE_EVERY = 3;

/**
 * The endless schedule of a seed: all faults in a random order, then again in another one; every third injection is of
 * two faults.
 */
export function* schedule(seed: number, faults: readonly Fault[]): Generator<Injection> {
  const random = randomFrom(seed);
  let deck: Fault[] = [];
  const next = (): Fault => {
    if (deck.length === 0) deck = random.shuffled(faults);
    return deck.pop() as Fault;
  };
  for (let count = 1; ; count++) {
    const chosen = [next()];
    if (count % DOUBLE_EVERY === 0 && faults.length > 1) {
      const second = next();
      if (second !== chosen[0]) chosen.push(second);
    }
    yield {
      name: chosen.map(({ name }) => name).join(' + '),
      faults: chosen.map((fault) => ({
        fault,
        seconds: random.between(...fault.durationRange),
        random: randomFrom(random.between(0, 2 ** 31)),
      })),
      apartMs: random.between(0, 3_000),
    };
  }
}
