import { expect, it } from 'vitest';
import { MemoryState } from '../../../core/state/worker.ts';
import { SchedulerEnv } from '../../kit/env.ts';

it('the measures follow from the four parts', () => {
  const memory = new MemoryState({ process: 100, managed: 60, spilled: 5, unmanagedOld: 30 });
  expect(memory).toMatchObject({
    managedTotal: 65,
    unmanaged: 40,
    unmanagedRecent: 10,
    optimistic: 90,
  });
});

it('what cannot be true at once is clamped', () => {
  const memory = new MemoryState({ process: 50, managed: 60, spilled: 0, unmanagedOld: 30 });
  expect(memory).toMatchObject({ managed: 50, unmanagedOld: 0, unmanaged: 0, optimistic: 50 });
});

it('the memory of several workers is summed part by part', () => {
  const parts = { process: 10, managed: 4, spilled: 2, unmanagedOld: 3 };
  const sum = MemoryState.sum([new MemoryState(parts), new MemoryState(parts)]);
  expect(sum).toMatchObject({ process: 20, managed: 8, spilled: 4, unmanagedOld: 6 });
});

it('a worker holds what it reports, less what it spilled', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.scatter({ x: ['w1'] });
  env.heartbeat('w1', { memoryBytes: 500, spilledMemoryBytes: 40, spilledDiskBytes: 10 });
  expect(env.worker('w1').memory).toMatchObject({
    process: 500,
    managed: 60,
    spilled: 10,
    unmanagedOld: 440,
  });
});

it('unmanaged memory is old when it lasts for 30 seconds', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  const beat = (memoryBytes: number): number => {
    env.heartbeat('w1', { memoryBytes });
    return env.worker('w1').memory.unmanagedOld;
  };
  expect(beat(100)).toBe(100);
  env.advance(10_000);
  expect(beat(300)).toBe(100);
  env.advance(20_001);
  expect(beat(400)).toBe(300);
  env.advance(1);
  expect(beat(200)).toBe(200);
});

it('results that came since the last heartbeat count at once, also before the first one', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.scatter({ x: ['w1'] });
  const { nbytes } = env.worker('w1');
  expect(nbytes).toBeGreaterThan(0);
  expect(env.worker('w1').memory).toMatchObject({
    process: nbytes,
    managed: nbytes,
    optimistic: nbytes,
  });
  env.heartbeat('w1', { memoryBytes: nbytes + 10 });
  env.scatter({ y: ['w1'], z: ['w1'] });
  expect(env.worker('w1').memory).toMatchObject({ process: 3 * nbytes, managed: 3 * nbytes });
});

it('results that a heartbeat has seen are never larger than the process, as in Dask', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.scatter({ x: ['w1'] });
  const { nbytes } = env.worker('w1');
  env.heartbeat('w1', { memoryBytes: nbytes - 1 });
  expect(env.worker('w1').memory).toMatchObject({ process: nbytes - 1, managed: nbytes - 1 });
});

it('unmanaged memory is old after another time when the configuration says so', () => {
  const env = new SchedulerEnv({ kernel: { recentToOldMs: 1_000 } });
  env.addWorkers(1);
  env.heartbeat('w1', { memoryBytes: 100 });
  env.advance(1_001);
  env.heartbeat('w1', { memoryBytes: 300 });
  expect(env.worker('w1').memory.unmanagedOld).toBe(300);
});
