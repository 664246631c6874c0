import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { StealProposal } from '../../../core/api/index.ts';
import { Balancer } from '../../../plugins/work-stealing/round.ts';
import { dask } from '../../../policies/stealing/dask.ts';
import type { TraceStimulus, TraceTask } from '../../conformance/trace-format.ts';
import { TraceKernel } from '../../conformance/trace-kernel.ts';
import { inCharge } from './kit.ts';

const DASK = inCharge(dask.create({}));

/**
 * Random clusters of our own and what Dask 2022.12.1 stole in them. It was made to take tasks in the
 * order in which we take them, thieves with what is on its way to them, and levels as they are at the
 * time of the round (see `docs/dask-compat.md`).
 */
const FILE = new URL('dask-rounds.jsonl', import.meta.url);

type Task = Partial<TraceTask> & { readonly key: string; readonly on?: string };

type Step =
  | { op: 'updateGraph'; tasks: readonly Task[] }
  | { op: 'balance'; asked: readonly string[][]; idle: string[]; saturated: string[] }
  | Exclude<TraceStimulus, { op: 'updateGraph' | 'balance' }>;

interface Recording {
  readonly seed: number;
  readonly durations: Readonly<Record<string, number>>;
  readonly steps: readonly Step[];
}

const recordings = readFileSync(FILE, 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line.replaceAll(/"w(1\d\d)"/g, '"tcp://w:4$1"')) as Recording);

/** Replays a recording step by step, rounds and answers included. */
class Replay {
  private readonly trace: TraceKernel;
  private readonly balancer: Balancer;
  private readonly runIds = new Map<string, number>();
  private proposals: StealProposal[] = [];
  private rank = 0;

  constructor(durations: Recording['durations']) {
    this.trace = new TraceKernel({ workerSaturation: 'inf', defaultTaskDurations: durations });
    const { kernel, nowMs } = this.trace;
    this.balancer = new Balancer({
      cluster: () => kernel.cluster,
      policy: () => DASK,
      spared: new Set(['split-shuffle']),
      enact: (proposals, victims) => {
        this.proposals.push(...proposals);
        kernel.handle({ op: 'steal-tasks', proposals, victims, stimulusId: 'steal' }, nowMs);
        for (const { key } of proposals) this.runIds.set(key, kernel.cluster.tasks.get(key)!.runId);
      },
    });
  }

  apply(step: Step): void {
    if (step.op === 'balance') this.balance(step);
    else if (step.op === 'stealResponse') this.answer(step);
    else if (step.op === 'updateGraph') this.submit(step.tasks);
    else this.trace.apply(step);
  }

  private balance({ asked, idle, saturated }: Extract<Step, { op: 'balance' }>): void {
    const { cluster } = this.trace.kernel;
    this.proposals = [];
    this.balancer.runOnce();
    const sorted = (workers: Iterable<{ address: string }>): string[] =>
      [...workers].map(({ address }) => address).sort();
    expect({
      asked: this.proposals.map(({ key, victim, thief }) => [key, victim, thief]),
      idle: sorted(cluster.idle),
      saturated: sorted(cluster.saturated),
    }).toEqual({ asked, idle, saturated });
  }

  private answer({ key, state, worker }: Extract<Step, { op: 'stealResponse' }>): void {
    const { kernel, nowMs } = this.trace;
    const runIds = [this.runIds.get(key) ?? -1];
    kernel.handle(
      { op: 'steal-response', worker, keys: [key], runIds, states: [state], stimulusId: 'answer' },
      nowMs,
    );
  }

  private submit(tasks: readonly Task[]): void {
    this.trace.apply({
      op: 'updateGraph',
      client: 'c1',
      keys: tasks.map(({ key }) => key),
      tasks: tasks.map(({ on, key, deps = [], ...rest }) => {
        const prefix = key.replace(/-\d+$/, '');
        const preferred = on === undefined ? {} : { workers: [on], allowOtherWorkers: true };
        return { key, deps, priority: this.rank++, prefix, group: prefix, ...preferred, ...rest };
      }),
    });
  }
}

describe('rounds of the eager rules ask for what Dask asks for, and leave the same workers idle', () => {
  it.each(recordings)('in the random cluster $seed', ({ durations, steps }) => {
    const replay = new Replay(durations);
    for (const step of steps) replay.apply(step);
  });
});
