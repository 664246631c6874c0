/**
 * `npm run dst -- [--seed N] [--minutes M] [--seeds N] [--only simulated|stack] [--tasks N] [--workers N] [--without 1,2]`:
 * tries each seed on a simulated cluster, and on the whole program over a network and disks in memory. Prints the
 * command that repeats a failure, and one that repeats it with less.
 */
import { flagsOf, type Reduction, reductionOf, shrink } from './reduction.ts';
import { checkStack } from './stack/stack-trial.ts';
import { check, type Verdict } from './trial.ts';

type Search = (seed: number, reduction?: Reduction) => Promise<Verdict>;

const SEARCHES: Readonly<Record<string, Search>> = { simulated: check, stack: checkStack };

function flag(name: string): string | undefined {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? undefined : process.argv[at + 1];
}

function numberFlag(name: string): number | undefined {
  const text = flag(name);
  return text === undefined ? undefined : Number(text);
}

async function reportFailure(name: string, search: Search, verdict: Verdict): Promise<void> {
  const { seed, problem = '', summary, size } = verdict;
  const command = `npm run dst -- --seed ${seed} --only ${name}`;
  process.stdout.write(
    `seed ${seed}, ${name}, failed: ${problem}\n  ${summary}\n  repeat it: ${command} ${flagsOf(reduction)}\n`,
  );
  if (flagsOf(reduction) !== '') return;
  const shrunk = await shrink({ problem, summary, size }, async (less) => {
    const found = await search(seed, less);
    return found.problem === undefined ? undefined : { ...found, problem: found.problem };
  });
  process.stdout.write(
    `  with less (${shrunk.attempts} attempts): ${command} ${flagsOf(shrunk.reduction)}\n    ${shrunk.failure.problem}\n    ${shrunk.failure.summary}\n`,
  );
}

const reduction = reductionOf(flag);
const first = numberFlag('seed') ?? 1;
const minutes = numberFlag('minutes');
const isSingle = minutes === undefined && numberFlag('seed') !== undefined;
const seeds = numberFlag('seeds') ?? (isSingle ? 1 : Infinity);
const begunMs = performance.now();
const endMs = begunMs + (minutes ?? (flag('seeds') === undefined ? 1 : Infinity)) * 60_000;
const only = flag('only');
const searches = Object.entries(SEARCHES).filter(([name]) => only === undefined || name === only);
if (searches.length === 0) throw new Error(`--only is one of ${Object.keys(SEARCHES).join(', ')}`);
let tried = 0;
let failed = 0;
for (let seed = first; seed < first + seeds && performance.now() < endMs; seed++) {
  for (const [name, search] of searches) {
    const verdict = await search(seed, reduction);
    if (verdict.problem !== undefined) {
      failed++;
      await reportFailure(name, search, verdict);
    } else if (seeds === 1) {
      const { summary, traceHash } = verdict;
      process.stdout.write(`seed ${seed}, ${name}: ${summary}\n  trace ${traceHash}\n`);
    }
  }
  tried++;
}
const tookS = (performance.now() - begunMs) / 1000;
process.stdout.write(
  `${tried} seeds in ${tookS.toFixed(0)} s, each ${searches.map(([name]) => name).join(' and ')}: ${failed} failures\n`,
);
process.exitCode = failed === 0 ? 0 : 1;
