/**
 * `npm run dst -- [--seed N] [--minutes M] [--seeds N]`: tries seed after seed on simulated clusters, and prints the
 * command that repeats a failure.
 */
import { check } from './trial.ts';

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
for (let next = seed; next < seed + seeds && performance.now() < endMs; next++) {
  const { problem, summary, traceHash } = await check(next);
  tried++;
  if (problem !== undefined) {
    failed++;
    process.stdout.write(
      `seed ${next} failed: ${problem}\n  ${summary}\n  repeat it: npm run dst -- --seed ${next}\n`,
    );
  } else if (seeds === 1) process.stdout.write(`seed ${next}: ${summary}\n  trace ${traceHash}\n`);
}
const tookS = (performance.now() - begunMs) / 1000;
process.stdout.write(
  `${tried} seeds in ${tookS.toFixed(0)} s: ${tried - failed} passed, ${failed} failed\n`,
);
process.exitCode = failed === 0 ? 0 : 1;
