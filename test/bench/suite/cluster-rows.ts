/** Whole clusters, from the client to the thread that computes and back. */
import { atLeast, atMost, number, type Row, three, VS_DASK } from './row.ts';

export const wire: Row = {
  name: 'zero',
  async figures(measure, { tasks }) {
    const line = (await measure('zero', ['tree', tasks, 100])).at(-1);
    return [
      {
        what: 'over TCP, workers that compute nothing: the longest that nothing else happens',
        unit: 'ms',
        value: number(line, 'longestBlockMs'),
        goal: atMost(15),
      },
      {
        what: 'over TCP, workers that compute nothing',
        unit: 'tasks per s',
        value: number(line, 'tasksPerS'),
        goal: atLeast(100_000),
      },
    ];
  },
};

/** Whole clusters in turn: client, scheduler and two worker processes, ours and Dask's. */
export const endToEnd: Row = {
  name: 'end to end',
  needs: 'python',
  async figures(measure, { isFull }) {
    const extent = isFull ? ['10000', '--turns', 3] : ['5000', '--turns', 1];
    const [own, dask, both] = three(await measure('end-to-end', ['map', ...extent, VS_DASK]));
    const what = 'end to end, two worker processes, no-ops';
    return [
      {
        what,
        unit: 'times the tasks per s',
        value: number(both, 'throughputRatio'),
        goal: atLeast(40),
        ours: number(own, 'tasksPerS'),
        theirs: number(dask, 'tasksPerS'),
      },
      {
        what,
        unit: 'times less CPU',
        value: number(both, 'cpuRatio'),
        goal: atLeast(40),
        ours: number(own, 'cpuUsPerTask'),
        theirs: number(dask, 'cpuUsPerTask'),
      },
      { what, unit: 'per s', value: number(own, 'tasksPerS'), goal: atLeast(60_000) },
      { what, unit: 'µs of CPU', value: number(own, 'cpuUsPerTask'), goal: atMost(30) },
    ];
  },
};

export const latency: Row = {
  name: 'latency',
  needs: 'python',
  async figures(measure, { isFull }) {
    const extent = isFull ? ['500', '--turns', 3] : ['200', '--turns', 1];
    const [own, dask, both] = three(await measure('end-to-end', ['latency', ...extent, VS_DASK]));
    const what = 'from submit to the result, two worker processes, median';
    const ours = number(own, 'p50Ms');
    const ratio = { value: number(both, 'latencyRatio'), theirs: number(dask, 'p50Ms') };
    return [
      { what, unit: 'ms', value: ours, goal: atMost(0.3) },
      {
        what: 'from submit to the result, two worker processes, the slowest of a hundred',
        unit: 'ms',
        value: number(own, 'p99Ms'),
        goal: atMost(5),
      },
      { what, unit: 'times less time', goal: atLeast(20), ours, ...ratio },
    ];
  },
};

export const latencyOfThreads: Row = {
  name: 'latency of threads',
  async figures(measure, { isFull }) {
    const tasks = isFull ? 2000 : 500;
    const line = (await measure('end-to-end', ['latency', tasks, '--mode', 'threads'])).at(-1);
    const what = 'from submit to the result, two workers in threads, median';
    return [{ what, unit: 'ms', value: number(line, 'p50Ms'), goal: atMost(0.08) }];
  },
};

/** Two threads, with scheduler and client, beside the best of the pools of threads. */
export const pools: Row = {
  name: 'pools',
  async figures(measure, { isFull }) {
    const extent = isFull ? [] : ['--tasks', 5000, '--rounds', 3, '--repeat', 1];
    const lines = await measure('worker', ['--part', 'pools', ...extent]);
    return (['burst', 'closed', 'items'] as const).flatMap((pattern) => {
      const its = lines.filter((line) => line['pattern'] === pattern);
      const best = its.find(({ bench }) => bench === 'worker-pool-vs-best');
      const beside = its.filter(({ pool }) => pool !== undefined);
      const ours = beside.find(({ pool }) => pool === 'yardmaster');
      const peers = beside.filter((line) => line !== ours);
      const what = `threads beside the best pool, ${pattern}`;
      return [
        {
          what,
          unit: 'times the tasks per s',
          value: number(best, 'throughputRatio'),
          goal: atLeast(pattern === 'items' ? 3 : 1.2),
          ours: number(ours, 'tasksPerS'),
          theirs: Math.max(...peers.map((line) => number(line, 'tasksPerS'))),
        },
        {
          what,
          unit: 'times less CPU',
          value: number(best, 'cpuRatio'),
          goal: atLeast(1),
          ours: number(ours, 'usPerTask'),
          theirs: Math.min(...peers.map((line) => number(line, 'usPerTask'))),
        },
      ];
    });
  },
};

/** The result of one worker process becomes a copy on another one, encrypted. */
export const large: Row = {
  name: 'large',
  async figures(measure, { isFull }) {
    const mib = isFull ? 1024 : 256;
    const lines = await measure('large-result', ['--mib', mib]);
    const line = lines.find((each) => each['what'] === 'worker-to-worker');
    return [
      {
        what: `a result of ${mib} MiB from one worker process to another`,
        unit: 'MiB per s',
        value: number(line, 'mibPerS'),
        goal: atLeast(1536),
      },
    ];
  },
};
