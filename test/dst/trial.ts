import { type MakeKernel, Simulation } from '../../adapters/simulator/index.ts';
import type { Reduction, Size } from './reduction.ts';
import { evaluate, type Trial, trialOf } from './swarm.ts';

/** How a seed ended. */
export interface Verdict {
  readonly seed: number;
  readonly summary: string;
  readonly size: Size;
  readonly traceHash: string;
  /** Undefined: all is well. */
  readonly problem: string | undefined;
}

/** Virtual milliseconds in which all must be settled once the faults are over. */
const SETTLE_MS = 600_000;
/** Rounds in which lost results may come back before they count as lost. */
const ROUNDS = 20;
const ROUND_MS = 1000;

/** Runs a seed twice: its checks must hold, and both runs must be equal. */
export async function check(
  seed: number,
  reduction?: Reduction,
  makeKernel?: MakeKernel,
): Promise<Verdict> {
  const first = await play(seed, reduction, makeKernel);
  if (first.problem !== undefined) return first;
  const second = await play(seed, reduction, makeKernel);
  if (second.traceHash === first.traceHash) return first;
  const problem = `two runs of the seed differ: ${first.traceHash} and ${second.traceHash}`;
  return { ...first, problem };
}

/** Runs a seed once. */
export async function play(
  seed: number,
  reduction?: Reduction,
  makeKernel?: MakeKernel,
): Promise<Verdict> {
  const trial = trialOf(seed, reduction);
  const simulation = await Simulation.start({
    ...trial.options,
    ...(makeKernel === undefined ? {} : { makeKernel }),
  });
  let problem: string | undefined;
  try {
    await run(simulation, trial);
    problem = await wrongResult(simulation, trial);
    simulation.kernel.validate();
  } catch (error) {
    problem = error instanceof Error ? error.message : String(error);
  }
  problem ??= simulation.logged.find((line) => /is a bug|inconsistent/.test(line));
  const { traceHash } = simulation.report();
  await simulation.close();
  const { summary, size } = trial;
  return { seed, summary, size, traceHash, problem };
}

async function run(simulation: Simulation, trial: Trial): Promise<void> {
  for (const { workload, client, atMs } of trial.submissions) {
    simulation.submit(workload, { client, atMs });
  }
  for (const { atMs, slot, policy } of trial.swaps) {
    if (atMs > simulation.nowMs) await simulation.pass(atMs - simulation.nowMs);
    await simulation.scheduler.replacePolicy(slot, policy);
  }
  await simulation.pass(trial.calmMs - simulation.nowMs);
  await simulation.run({ maxMs: SETTLE_MS });
}

/** The first wanted key whose result is not that of a sequential evaluation. */
async function wrongResult(simulation: Simulation, trial: Trial): Promise<string | undefined> {
  const expected = new Map<string, number>();
  for (const { workload } of trial.submissions) {
    for (const { key, dependencies } of workload.tasks) {
      const inputs = dependencies.map((need) => expected.get(need)!);
      expected.set(key, evaluate(key, inputs));
    }
  }
  for (const { workload, client } of trial.submissions) {
    for (const key of workload.keys) {
      const status = simulation.clients.get(client)?.statusOf(key);
      if (status !== 'memory') return `the client knows "${key}" as ${String(status)}`;
      let value = simulation.valueOf(key);
      // Results may be lost, and computed again, until the news of it has arrived.
      for (let round = 0; value === undefined && round < ROUNDS; round++) {
        await simulation.pass(ROUND_MS);
        await simulation.run({ maxMs: SETTLE_MS });
        value = simulation.valueOf(key);
      }
      if (value !== expected.get(key)) {
        return `"${key}" has the value ${String(value)}, and ${expected.get(key)!} is right`;
      }
    }
  }
  return undefined;
}
