/** What a worker's machine costs per task, without runs, transfers and network. */
import type { WorkerEvent } from '../../core/worker/events.ts';
import { WorkerKernel } from '../../core/worker/worker-kernel.ts';
import { median, type Result, round } from './side-by-side.ts';

/** Tasks that the scheduler sends at once. */
const BATCH = 100;

/** CPU time from `compute-task` over the run to `free-keys`; the first round is not measured. */
export function measureMachine(tasks: number, rounds: number): Result {
  const measured: Result[] = [];
  for (let turn = 0; turn <= rounds; turn++) {
    const kernel = new WorkerKernel({ address: 'inmemory://worker', threadCount: 2 });
    const start = process.cpuUsage();
    for (let first = 0; first < tasks; first += BATCH) live(kernel, first);
    const { user, system } = process.cpuUsage(start);
    if (turn > 0) measured.push({ tasks, usPerTask: round((user + system) / tasks) });
  }
  return median(measured, 'usPerTask');
}

function live(kernel: WorkerKernel, first: number): void {
  const keys = Array.from({ length: BATCH }, (_, index) => `task-${first + index}`);
  let instructions = kernel.handleAll(
    keys.map((key, index) => ({
      op: 'compute-task',
      key,
      runId: first + index,
      priority: [0, first, index],
      runSpec: undefined,
      dependencies: { keys: [], nbytes: [], whoHas: [] },
      durationS: 0.5,
      stimulusId: `compute-${key}`,
    })),
    first,
  );
  for (;;) {
    const ends: WorkerEvent[] = [];
    for (const instruction of instructions) {
      if (instruction.kind !== 'execute') continue;
      ends.push({
        op: 'execute-success',
        key: instruction.key,
        nbytes: 8,
        type: 'number',
        timings: [{ action: 'compute', startS: 0, stopS: 0 }],
        stimulusId: `finished-${instruction.key}`,
      });
    }
    if (ends.length === 0) break;
    instructions = kernel.handleAll(ends, first);
  }
  kernel.handle({ op: 'free-keys', keys, stimulusId: `free-${first}` }, first);
  if (kernel.tables.tasks.size > 0) throw new Error('tasks are left on the worker');
}
