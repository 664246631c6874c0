import { describe, expect, it } from 'vitest';

import type { Send } from '../../../core/worker/events.ts';
import { FAILURE, P1, WorkerBench } from './builders.ts';

describe('what a worker reports of the time that a task took', () => {
  it('the time of a transfer is reported with the first task that waited for it', () => {
    const bench = new WorkerBench({ threadCount: 2 });
    bench.compute('w', { x: [P1] });
    bench.compute('v', { x: [P1] });
    const timing = { action: 'transfer', startS: 1, stopS: 2 };
    bench.send({ op: 'gather-success', worker: P1, keys: ['x'], nbytes: [9], timing });
    const ran = { action: 'compute', startS: 2, stopS: 3 };
    const timingsOf = (key: string): unknown => {
      const end = { op: 'execute-success', key, nbytes: 1, type: 't', timings: [ran] } as const;
      const reports = bench.instructions(end) as readonly Send[];
      return reports.map(({ message }) => 'timings' in message && message.timings)[0];
    };
    expect([timingsOf('w'), timingsOf('v')]).toEqual([[timing, ran], [ran]]);
  });

  it('a run that fails is reported with its times', () => {
    const bench = new WorkerBench();
    bench.compute('x');
    const timings = [{ action: 'compute', startS: 1, stopS: 2 }];
    const end = { op: 'execute-failure', key: 'x', failure: FAILURE, timings } as const;
    const [report] = bench.instructions(end) as readonly Send[];
    expect(report?.message).toMatchObject({ op: 'task-erred', timings });
  });
});
