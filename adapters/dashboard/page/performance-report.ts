import type { CallTree } from '../../../core/api/executor.ts';
import { PrefixNumbers, streamWindow, TaskRecorder } from '../task-recorder.ts';
import { FlameGraph } from './flame.ts';
import { Stream } from './views/stream.ts';

/**
 * A task of the report: key, prefix, numbers of the worker and of its thread, 1 for an error, then action, start and stop in
 * milliseconds.
 */
type Task = readonly [string, string, number, number, 0 | 1, ...(string | number)[]];

interface Data {
  readonly startS: number;
  readonly stopS: number;
  readonly workers: readonly (readonly [address: string, name: string])[];
  readonly tasks: readonly Task[];
  /** Samples by the id of the element that shows them. */
  readonly profiles: Readonly<Record<string, CallTree>>;
}

/** Between two samples of a worker. */
const INTERVAL_MS = 10;

/** Margin around all tasks, as a share of their time. */
const MARGIN = 0.02;

function show(): void {
  const data = JSON.parse(document.getElementById('data')?.textContent ?? '{}') as Data;
  const { startS, stopS, workers, tasks, profiles } = data;
  for (const [id, tree] of Object.entries(profiles)) {
    if (tree.count === 0) continue;
    const flame = new FlameGraph();
    flame.show(tree, INTERVAL_MS);
    document.getElementById(id)?.replaceChildren(flame.element);
  }
  if (tasks.length === 0) return;
  const numbers = new PrefixNumbers();
  const spans = tasks.reduce((sum, task) => sum + (task.length - 5) / 3, 0);
  const recorder = new TaskRecorder(Math.max(1, spans), numbers);
  for (const [key, prefix, worker, lane, isError, ...rest] of tasks) {
    const timings = [];
    for (let k = 0; k < rest.length; k += 3) {
      const [startMs, stopMs] = [Number(rest[k + 1]), Number(rest[k + 2])];
      const action = String(rest[k]);
      timings.push({ action, startS: startS + startMs / 1000, stopS: startS + stopMs / 1000 });
    }
    const [address = ''] = workers[worker] ?? [];
    recorder.add(key, prefix, { worker: address, lane, timings, isError: isError === 1 });
  }
  const state = {
    nowS: stopS,
    prefixes: new Map(numbers.names.map((name, number) => [name, { name, number }])),
    workers: new Map(workers.map(([address, name]) => [address, { address, name }])),
  };
  const { fromS, toS } = recorder.range() ?? { fromS: startS, toS: stopS };
  const margin = MARGIN * (toS - fromS) + 0.001;
  const stream = new Stream(
    {
      link: {
        state,
        stream: (from, to, width) =>
          Promise.resolve({
            sinceS: startS,
            ...streamWindow(recorder, { fromS: from, toS: to, width }),
          }),
      },
      showTask: () => undefined,
      go: () => undefined,
      say: () => undefined,
    },
    { fromS: fromS - margin, toS: toS + margin },
  );
  document.getElementById('stream')?.replaceWith(stream.element);
}

show();
