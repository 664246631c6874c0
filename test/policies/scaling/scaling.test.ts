import { beforeEach, describe, expect, it } from 'vitest';
import { setTaskState } from '../../../core/state/relations.ts';
import type { WorkerState } from '../../../core/state/task.ts';
import { adaptiveTarget, workersToClose } from '../../../policies/scaling/adaptive.ts';
import type { ClosableWorkers } from '../../../core/api/index.ts';
import { AmmBench } from '../../plugins/amm/amm-kit.ts';

let bench: AmmBench;
beforeEach(() => {
  bench = new AmmBench();
});

/** Workers w0, w1 … with a limit of 1000 bytes that hold results of these sizes. */
function workers(...sizes: readonly number[]): WorkerState[] {
  return sizes.map((nbytes, index) => {
    const worker = bench.worker(`w${index}`, 0, 'running', 1000);
    if (nbytes > 0) bench.task(`x${index}`, [worker], nbytes);
    return worker;
  });
}

const close = (options: ClosableWorkers = {}): string[] =>
  workersToClose(bench.cluster, options).map(({ name }) => name);

describe('workers that can be closed', () => {
  it('are idle ones, those with the least first, while twice what is stored fits elsewhere', () => {
    workers(400, 300, 0, 100);
    // 800 bytes are stored; the last one that goes leaves 2000 bytes of memory.
    expect(close()).toEqual(['w2', 'w3']);
    expect(close({ memoryRatio: 1 })).toEqual(['w2', 'w3', 'w1']);
    expect(close({ memoryRatio: 10 })).toEqual([]);
  });

  it('are none without workers, and none while all are busy', () => {
    expect(close()).toEqual([]);
    for (const worker of workers(0, 0)) bench.reader(`on ${worker.name}`, [], worker);
    expect(close()).toEqual([]);
    expect(close({ n: 0 })).toEqual([]);
  });

  it('are as many as requested, busy ones last', () => {
    const [first] = workers(0, 500, 200);
    bench.reader('busy', [], first);
    expect(close({ n: 2 })).toEqual(['w2', 'w1']);
    expect(close({ n: 3 })).toEqual(['w2', 'w1', 'w0']);
    expect(close({ n: 9 })).toEqual(['w2', 'w1', 'w0']);
    expect(close({ target: 2 })).toEqual(['w2']);
    expect(close({ target: 5 })).toEqual([]);
  });

  it('leave at least the minimum', () => {
    workers(0, 0, 0);
    expect(close({ minimum: 2 })).toEqual(['w2']);
    expect(close({ n: 3, minimum: 1 })).toEqual(['w2', 'w1']);
  });

  it('are not those with a task that has seceded, nor those that leave already', () => {
    const [first, second] = workers(0, 0, 0);
    first!.longRunning.add(bench.reader('long', [], first));
    bench.setStatus(second!, 'closing-gracefully');
    expect(close({ n: 1 })).toEqual(['w2']);
  });

  it('can go in groups, all of one or none', () => {
    workers(0, 0, 900, 0);
    const key = ({ name }: { name: string }): string => (name < 'w2' ? 'a' : 'b');
    expect(close({ key })).toEqual(['w0', 'w1']);
    expect(close({ key, n: 1 })).toEqual([]);
  });

  it('are none of a group in which a task has seceded', () => {
    const [first] = workers(0, 0, 0, 0);
    first!.longRunning.add(bench.reader('long', [], first));
    const key = ({ name }: { name: string }): string => (name < 'w2' ? 'a' : 'b');
    expect(close({ key, n: 4 })).toEqual(['w2', 'w3']);
  });

  it('of workers without a limit the idle ones', () => {
    const free = ['a', 'b'].map((name) => bench.worker(name, 0, 'running', 0));
    bench.task('x', [free[0]!], 1e12);
    expect(close()).toEqual(['b']);
  });
});

describe('the target for adaptive scaling', () => {
  /** Tasks of an unknown kind, half a second each. */
  function queue(count: number): void {
    for (let n = 0; n < count; n++) {
      const task = bench.cluster.newTask(`q-${n}`);
      task.rank = n;
      setTaskState(task, 'queued');
      bench.cluster.queued.add(task);
    }
  }

  it('without workers is what does the work in the given time', () => {
    queue(100);
    expect(adaptiveTarget(bench.cluster)).toBe(10);
    expect(adaptiveTarget(bench.cluster, 1)).toBe(50);
  });

  it('counts threads', () => {
    const worker = bench.worker('w', 0);
    Object.assign(worker, { threadCount: 4 });
    queue(100);
    expect(adaptiveTarget(bench.cluster)).toBe(3);
    expect(adaptiveTarget(bench.cluster, 1)).toBe(13);
  });

  it('extrapolates from a hundred tasks', () => {
    queue(1000);
    expect(adaptiveTarget(bench.cluster)).toBe(100);
  });

  it('is one for a single short task, and none without work', () => {
    expect(adaptiveTarget(bench.cluster)).toBe(0);
    queue(1);
    expect(adaptiveTarget(bench.cluster, 1000)).toBe(1);
  });

  it('is no more than there are tasks', () => {
    const [worker] = workers(0);
    const { prefix } = bench.reader('slow-1', [], worker);
    prefix.addDuration(1000);
    bench.cluster.computeOccupancyS = 1000;
    expect(adaptiveTarget(bench.cluster)).toBe(1);
  });

  it('is twice the workers when memory is short', () => {
    workers(700, 700);
    expect(adaptiveTarget(bench.cluster)).toBe(4);
  });

  it('falls by the workers that can go alone', () => {
    workers(0, 0, 100);
    expect(adaptiveTarget(bench.cluster)).toBe(1);
    bench = new AmmBench();
    workers(500, 500);
    expect(adaptiveTarget(bench.cluster)).toBe(2);
  });
});
