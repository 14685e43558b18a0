import { randomInt } from 'node:crypto';
import { Command, InvalidArgumentError, Option } from 'commander';
import { FAULTS } from './faults.ts';
import { torture } from './torture.ts';

/** `npm run torture`: see docs/torture.md. Exits with code 1 if something was lost, duplicated, undone or wrong. */
const { minutes, seed, only } = new Command('torture')
  .description('Injects faults into a complete Signpost under load, and audits everything that it acknowledged.')
  .option('--minutes <number>', 'how long faults are injected', positive, 10)
  .option('--seed <number>', 'repeats the schedule of an earlier run', whole, randomInt(2 ** 31))
  .addOption(new Option('--only <fault...>', 'only these faults').choices(FAULTS.map(({ name }) => name)).default([]))
  .parse()
  .opts<{ minutes: number; seed: number; only: string[] }>();

console.log(`seed ${seed}`);
const startedAt = Date.now();
const { passed, report } = await torture({
  minutes,
  seed,
  only,
  logProgress: (line) => console.log(`${((Date.now() - startedAt) / 1_000).toFixed(0).padStart(5)} s  ${line}`),
});
console.log(report);
process.exit(passed ? 0 : 1);

function positive(text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new InvalidArgumentError('It must be a number above 0.');
  return value;
}

function whole(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0) throw new InvalidArgumentError('It must be a whole number.');
  return value;
}
