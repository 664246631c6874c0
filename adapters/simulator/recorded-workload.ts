import { type GraphTask, YardmasterError } from '../../core/api/index.ts';
import type { LogFrame } from '../../core/log/format.ts';
import type { TasksPart } from '../../core/kernel/snapshot/state-parts.ts';
import { TASK_STATE_NAMES } from '../../core/state/task-state-name.ts';
import type { TaskFinished } from '../../core/messages/stimulus.ts';
import { readRecording } from '../app/recording/replay-recording.ts';
import { type CostedTask, graphWorkload, type Workload } from '../workloads/index.ts';

type RecordedTask = Pick<GraphTask, 'key' | 'dependencies' | 'prefix'>;

/** What a recording says about the graphs of clients and the cost of tasks. */
export class RecordedGraphs {
  private readonly tasks = new Map<string, RecordedTask>();
  private readonly wanted = new Set<string>();
  private readonly durationsS = new Map<string, number>();
  private readonly sizes = new Map<string, number>();

  private readonly known: TasksPart[] = [];
  private hasBegun = false;

  add(frame: LogFrame): void {
    if (frame.kind === 'state' && !this.hasBegun && frame.payload.part === 'tasks') {
      this.known.push(frame.payload);
    }
    if (frame.kind !== 'stimulus') return;
    if (!this.hasBegun) this.addKnown();
    this.hasBegun = true;
    const { payload } = frame;
    if (payload.op === 'update-graph') {
      for (const task of payload.tasks) {
        if (!this.tasks.has(task.key)) this.tasks.set(task.key, task);
      }
      for (const key of payload.keys) this.wanted.add(key);
    } else if (payload.op === 'update-data') {
      for (const { key, nbytes = 0 } of payload.items) {
        if (!this.tasks.has(key)) this.tasks.set(key, { key, dependencies: [] });
        this.durationsS.set(key, 0);
        this.sizes.set(key, nbytes);
      }
    } else if (payload.op === 'task-finished') this.addFinished(payload);
  }

  /** The tasks that were open when the recording began, and the results that they need, which cost nothing. */
  private addKnown(): void {
    const keys = new Map<number, string>();
    const sizes = new Map<string, number>();
    for (const part of this.known) {
      part.ids.forEach((id, at) => keys.set(id, part.keys[at] ?? ''));
      part.keys.forEach((key, at) => sizes.set(key, Math.max(0, part.nbytes[at] ?? 0)));
    }
    const keysOf = (ids: readonly number[] = []): string[] =>
      ids.flatMap((id) => keys.get(id) ?? []);
    const needed = new Set<string>();
    for (const { keys: ownKeys, states, dependencies, whoWants } of this.known) {
      for (const [at, key] of ownKeys.entries()) {
        if (!isOpen(states[at] ?? 0)) continue;
        const needs = keysOf(dependencies[at]);
        this.tasks.set(key, { key, dependencies: needs });
        for (const need of needs) needed.add(need);
        if ((whoWants[at] ?? []).length > 0) this.wanted.add(key);
      }
    }
    for (const key of needed) {
      if (this.tasks.has(key)) continue;
      this.tasks.set(key, { key, dependencies: [] });
      this.durationsS.set(key, 0);
      this.sizes.set(key, sizes.get(key) ?? 0);
    }
  }

  private addFinished({ key, nbytes, timings }: TaskFinished): void {
    let seconds = 0;
    for (const { action, startS, stopS } of timings) {
      if (action === 'compute') seconds += Math.max(0, stopS - startS);
    }
    this.durationsS.set(key, seconds);
    if (nbytes !== undefined) this.sizes.set(key, nbytes);
  }

  /**
   * All graphs as one.
   * @param file - the recording
   * @throws YardmasterError `ERR_GRAPH_INVALID` when no graph was submitted
   */
  workload(file: string): Workload {
    const { tasks, wanted } = this;
    if (tasks.size === 0) {
      const message = `${file}: no graph was submitted while this was recorded`;
      throw new YardmasterError('ERR_GRAPH_INVALID', message, { file });
    }
    const keys = [...wanted].filter((key) => tasks.has(key));
    return graphWorkload(file, this.costed(), { wanted: keys, source: file });
  }

  /** Tasks that did not finish in the recording take the mean of all others. */
  private costed(): CostedTask[] {
    const meanS = mean(this.durationsS);
    const meanBytes = mean(this.sizes);
    return [...this.tasks.values()].map(({ key, dependencies, prefix }) => ({
      key,
      // Results that the cluster had before the recording began are part of it only where open tasks needed them.
      needs: dependencies.filter((need) => this.tasks.has(need)),
      durationS: this.durationsS.get(key) ?? meanS,
      nbytes: this.sizes.get(key) ?? meanBytes,
      ...(prefix === undefined ? {} : { prefix }),
    }));
  }
}

/**
 * The graphs that clients submitted in a recording as one workload, with the durations and sizes that workers reported.
 * @param file - path, made by `yardmaster scheduler --record`
 * @throws YardmasterError `ERR_LOG` when it cannot be read; `ERR_GRAPH_INVALID` when no graph was submitted
 */
export async function recordedWorkload(file: string): Promise<Workload> {
  const graphs = new RecordedGraphs();
  for await (const frame of readRecording(file)) graphs.add(frame);
  return graphs.workload(file);
}

/** Whether a task was still to be computed, by its state as a checkpoint has it. */
export function isOpen(saved: number): boolean {
  const state = TASK_STATE_NAMES[saved % STATE_FLAGS];
  return state !== undefined && OPEN_STATES.includes(state);
}

/** Positions of states are below this; above are flags. */
const STATE_FLAGS = 16;
const OPEN_STATES: readonly string[] = ['waiting', 'no-worker', 'queued', 'processing'];

function mean(values: ReadonlyMap<string, number>): number {
  let sum = 0;
  for (const value of values.values()) sum += value;
  return values.size === 0 ? 0 : sum / values.size;
}
