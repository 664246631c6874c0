import type { ComputeTask, ReplicaLocations } from '../../../core/messages/to-worker.ts';
import type { Instruction, WorkerEvent } from '../../../core/worker/events.ts';
import { toTaskFailure } from '../../../core/worker/transitions.ts';
import { WorkerKernel } from '../../../core/worker/worker-kernel.ts';
import type { WorkerKernelSettings } from '../../../core/worker/worker-options.ts';
import type { WorkerTaskStateName } from '../../../core/worker/worker-task.ts';

export const SELF = 'tcp://10.0.0.1:1';
export const P1 = 'tcp://10.0.0.2:1';
export const P2 = 'tcp://10.0.0.3:1';
export const LOCAL = 'tcp://10.0.0.1:2';

export const FAILURE = toTaskFailure({
  name: 'Error',
  message: 'boom',
  stack: 'Error: boom\n at x',
});

/** Where each key is, as `{ x: [P1] }` or `{ x: { at: [P1], nbytes: 5 } }`. */
export type Locations = Readonly<
  Record<string, readonly string[] | { readonly at: readonly string[]; readonly nbytes: number }>
>;

export function locations(where: Locations): ReplicaLocations {
  const entries = Object.entries(where);
  return {
    keys: entries.map(([key]) => key),
    nbytes: entries.map(([, value]) => (isBare(value) ? 100 : value.nbytes)),
    whoHas: entries.map(([, value]) => (isBare(value) ? value : value.at)),
  };
}

function isBare(value: Locations[string]): value is readonly string[] {
  return Array.isArray(value);
}

/**
 * A worker's machine whose every instruction has to be accounted for: `send` gives what one event
 * brought about, in short notation.
 */
export class WorkerBench {
  readonly kernel: WorkerKernel;
  private nowMs = 0;
  private count = 0;

  constructor(settings: Partial<WorkerKernelSettings> = {}) {
    this.kernel = new WorkerKernel({ address: SELF, threadCount: 1, validate: true, ...settings });
  }

  /** What the event brought about, one line for each instruction. */
  send(...events: readonly (WorkerEvent | Unnamed)[]): string[] {
    return this.instructions(...events).map(inShort);
  }

  instructions(...events: readonly (WorkerEvent | Unnamed)[]): readonly Instruction[] {
    const named = events.map((event) => ({ stimulusId: `s${++this.count}`, ...event }));
    return this.kernel.handleAll(named, ++this.nowMs);
  }

  compute(key: string, where: Locations = {}, more: Partial<ComputeTask> = {}): string[] {
    return this.send(computeTask(key, where, more));
  }

  succeed(key: string, nbytes = 10): string[] {
    return this.send({ op: 'execute-success', key, nbytes, type: 'number', timings: [] });
  }

  fail(key: string): string[] {
    return this.send({ op: 'execute-failure', key, failure: FAILURE });
  }

  arrive(worker: string, ...keys: string[]): string[] {
    return this.send({ op: 'gather-success', worker, keys, nbytes: keys.map(() => 100) });
  }

  free(...keys: string[]): string[] {
    return this.send({ op: 'free-keys', keys });
  }

  /** State by key; a suspended task with its present activity and the next one. */
  get states(): Record<string, string> {
    return Object.fromEntries(
      [...this.kernel.tables.tasks.values()].map(({ key, state, previous, next }) => [
        key,
        previous === undefined
          ? state
          : `${state}(${previous}${next === undefined ? '' : `→${next}`})`,
      ]),
    );
  }

  state(key: string): WorkerTaskStateName | undefined {
    return this.kernel.tables.tasks.get(key)?.state;
  }
}

export type Unnamed = WorkerEvent extends infer E
  ? E extends WorkerEvent
    ? Omit<E, 'stimulusId'>
    : never
  : never;

let runId = 0;

export function computeTask(
  key: string,
  where: Locations = {},
  more: Partial<ComputeTask> = {},
): ComputeTask {
  return {
    op: 'compute-task',
    key,
    runId: ++runId,
    priority: [0, 1, 0],
    runSpec: key,
    dependencies: locations(where),
    durationS: 1,
    stimulusId: `compute-${key}`,
    ...more,
  };
}

function inShort(instruction: Instruction): string {
  switch (instruction.kind) {
    case 'execute':
      return `execute ${[instruction.key, ...instruction.dependencies].join(' ')}`;
    case 'gather':
      return `gather ${instruction.worker} ${instruction.keys.join(' ')}`;
    case 'send': {
      const { message } = instruction;
      if ('keys' in message) return `${message.op} ${message.keys.join(' ')}`;
      return 'key' in message ? `${message.op} ${message.key}` : message.op;
    }
    case 'retry-busy-later':
      return `retry-busy-later ${instruction.worker}`;
    case 'rejoined':
    case 'resumed':
    case 'limit-time':
    case 'abort-execution':
    case 'drop-data':
      return `${instruction.kind} ${instruction.key}`;
  }
}
