/** The search of the examples with p-queue and piscina: `node p-queue.js CANDIDATES GOAL`. */
/* global AbortController */
import { setMaxListeners } from 'node:events';
import process from 'node:process';
import { URL } from 'node:url';
import PQueue from 'p-queue';
import { Piscina } from 'piscina';

const ROUNDS = 30;
const [count, goal] = process.argv.slice(2).map(Number);
const filename = new URL('../../../../docs/examples/search/learner.js', import.meta.url).href;
const pool = new Piscina({ filename, name: 'train', minThreads: 2, maxThreads: 2 });
const queue = new PQueue({ concurrency: 2 });
const stop = new AbortController();
const { signal } = stop;
setMaxListeners(0, signal);
const errorsByRound = [];
let [runs, best] = [0, { error: Infinity, round: 0 }];

/** One round of a candidate, and those after it, while it is among the best third. */
async function run(before) {
  const { round = 0 } = before;
  const state = await queue.add(() => pool.run(before), { priority: round, signal });
  runs++;
  if (state.error < best.error) best = state;
  if (best.error < goal) stop.abort();
  const errors = (errorsByRound[state.round] ??= []);
  errors.push(state.error);
  const better = errors.filter((error) => error < state.error).length;
  if (better <= errors.length / 3 && state.round < ROUNDS) await run(state);
}

const candidates = Array.from({ length: count }, (_, at) => ({
  settings: { rate: 10 ** (-5 + 2 * ((at * 0.382) % 1)), momentum: (at * 0.618) % 0.95 },
}));
try {
  await Promise.all(candidates.map(run));
} catch (error) {
  if (!signal.aborted) throw error;
}
process.stdout.write(`error ${best.error.toFixed(4)} in round ${best.round}, ${runs} runs\n`);
await pool.destroy();
