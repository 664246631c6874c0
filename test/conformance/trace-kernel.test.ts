import { expect, it } from 'vitest';
import { AmmKernel } from './amm-kernel.ts';
import { TraceKernel } from './trace-kernel.ts';

it('a recorded heartbeat sets the old unmanaged memory, and keeps the process when it does not say', () => {
  const kernel = new AmmKernel({ ammMeasure: 'optimistic', workerSaturation: 'inf' });
  const address = 'tcp://10.0.0.1:4001';
  kernel.apply({ op: 'addWorker', address, nthreads: 1, processMemory: 4_000 });
  kernel.apply({ op: 'addClient', client: 'c' });
  kernel.apply({ op: 'updateData', client: 'c', whoHas: { x: [address] }, nbytes: { x: 100 } });
  const memory = (): number => {
    kernel.apply({ op: 'ammRun', policies: [] });
    return kernel.report?.workersMemoryBefore[address] ?? NaN;
  };
  expect(memory()).toBe(4_000);
  kernel.apply({ op: 'heartbeat', address, unmanagedOld: 700 });
  expect(memory()).toBe(800);
  kernel.apply({ op: 'heartbeat', address, processMemory: 1_000, unmanagedOld: 2_000 });
  expect(memory()).toBe(1_000);
});

it('the size of a result without size is -1, also where the recording has null', () => {
  const kernel = new TraceKernel({});
  kernel.apply({ op: 'addWorker', address: 'tcp://10.0.0.1:4001', nthreads: 1 });
  kernel.apply({ op: 'addClient', client: 'c' });
  kernel.apply({
    op: 'updateGraph',
    client: 'c',
    tasks: [{ key: 'x', deps: [], priority: 0 }],
    keys: ['x'],
  });
  const worker = 'tcp://10.0.0.1:4001';
  kernel.apply({ op: 'taskFinished', key: 'x', worker, nbytes: null, duration: 1 });
  const task = kernel.kernel.cluster.tasks.get('x');
  expect([task?.state, task?.nbytes]).toEqual(['memory', -1]);
});
