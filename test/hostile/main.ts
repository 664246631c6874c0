/** `npm run hostile`: what is done to a cluster for hours, and the figures of it. */
const MODES: Readonly<Record<string, (count: number) => Promise<void>>> = {
  '--minutes': async (minutes) => (await import('./wires.ts')).attackFor(minutes),
  '--frames': async (frames) => (await import('./wires.ts')).attackWith(frames),
  '--kernel': async (stimuli) => (await import('./kernel.ts')).fuzzKernel(stimuli),
  '--kills': async (count) => (await import('./disturbances.ts')).printDisturbances(count),
  '--dependents': async (count) => (await import('./dependents.ts')).printDependents(count),
  '--strangers': async (count) => (await import('./strangers.ts')).printStrangers(count),
};

const [mode = '--minutes', count = '1'] = process.argv.slice(2);
const run = MODES[mode];
if (run === undefined || !(Number(count) > 0)) {
  process.stderr.write(`usage: npm run hostile -- ${Object.keys(MODES).join(' N | ')} N\n`);
  process.exitCode = 2;
} else await run(Number(count));
