/**
 * `npm run dst -- [--seed N] [--minutes M] [--seeds N] [--only simulated|stack]`: tries each seed on a simulated cluster, and
 * on the whole program over a network in memory, and prints the command that repeats a failure.
 */
import { checkStack } from './stack/stack-trial.ts';
import { check, type Verdict } from './trial.ts';

const SEARCHES: Readonly<Record<string, (seed: number) => Promise<Verdict>>> = {
  simulated: check,
  stack: checkStack,
};

function flag(name: string): number | undefined {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? undefined : Number(process.argv[at + 1]);
}

const seed = flag('seed') ?? 1;
const minutes = flag('minutes');
const seeds = flag('seeds') ?? (minutes === undefined && flag('seed') !== undefined ? 1 : Infinity);
const endMs = performance.now() + (minutes ?? 1) * 60_000;
const begunMs = performance.now();
let tried = 0;
let failed = 0;
const onlyAt = process.argv.indexOf('--only');
const only = onlyAt < 0 ? undefined : process.argv[onlyAt + 1];
const searches = Object.entries(SEARCHES).filter(([name]) => only === undefined || name === only);
if (searches.length === 0) throw new Error(`--only is one of ${Object.keys(SEARCHES).join(', ')}`);
for (let next = seed; next < seed + seeds && performance.now() < endMs; next++) {
  for (const [name, search] of searches) {
    const { problem, summary, traceHash } = await search(next);
    if (problem !== undefined) {
      failed++;
      process.stdout.write(
        `seed ${next}, ${name}, failed: ${problem}\n  ${summary}\n  repeat it: npm run dst -- --seed ${next} --only ${name}\n`,
      );
    } else if (seeds === 1) {
      process.stdout.write(`seed ${next}, ${name}: ${summary}\n  trace ${traceHash}\n`);
    }
  }
  tried++;
}
const tookS = (performance.now() - begunMs) / 1000;
process.stdout.write(
  `${tried} seeds in ${tookS.toFixed(0)} s, each ${searches.map(([name]) => name).join(' and ')}: ${failed} failures\n`,
);
process.exitCode = failed === 0 ? 0 : 1;
