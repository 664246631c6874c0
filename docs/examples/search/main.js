/** `node main.js [CANDIDATES] [MODE] [GOAL]`: looks for settings of a learner, and stops when its error is small enough. */
import process from 'node:process';
import { URL } from 'node:url';
import { asCompleted, defineTasks, LocalCluster } from 'yardmaster';
import * as learner from './learner.js';

const { train } = defineTasks(new URL('learner.js', import.meta.url), learner);
const ROUNDS = 30;
const [count = '200', mode = 'threads', goal = '0.007'] = process.argv.slice(2);
const cluster = await LocalCluster.start({ mode });
const client = await cluster.client();
const candidates = Array.from({ length: Number(count) }, (_, at) => ({
  settings: { rate: 10 ** (-5 + 2 * ((at * 0.382) % 1)), momentum: (at * 0.618) % 0.95 },
}));

const open = new Set(client.map(train, candidates));
const completed = asCompleted(open);
const errorsByRound = [];
let [runs, best] = [0, { error: Infinity, round: 0 }];
for await (const future of completed) {
  const state = await future.result();
  open.delete(future);
  runs++;
  if (state.error < best.error) best = state;
  if (best.error < Number(goal)) break;
  const errors = (errorsByRound[state.round] ??= []);
  errors.push(state.error);
  const better = errors.filter((error) => error < state.error).length;
  if (better > errors.length / 3 || state.round === ROUNDS) continue;
  // One of the best third so far goes on, before those that have not begun.
  const next = client.with({ priority: state.round }).submit(train, state);
  open.add(next);
  completed.add([next]);
}
client.cancel(open);
process.stdout.write(`error ${best.error.toFixed(4)} in round ${best.round}, ${runs} runs\n`);
await cluster.close();
