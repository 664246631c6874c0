/** A worker whose kernel breaks ends, says why, and costs nothing but time. */
import { expect, it, onTestFinished } from 'vitest';
import { startScheduler } from '../../kit/start-scheduler.ts';
import { startWorker } from '../../../adapters/app/start-worker.ts';
import { Client } from '../../../adapters/client/index.ts';
import { byFactory } from '../../../core/api/token.ts';
import { WORKER_IDENTITY, WORKER_OPTIONS } from '../../../core/worker-host/tokens.ts';
import { kernelSettings } from '../../../core/worker-host/worker-options.ts';
import type { Instruction, WorkerEvent } from '../../../core/worker/events.ts';
import { WorkerKernel } from '../../../core/worker/worker-kernel.ts';
import { slowSquare } from '../../adapters/cli/fixtures/tasks.js';
import { MemoryLog } from '../../bad-input/memory-log.ts';

/** Throws at every event once it is broken. */
class BreakingKernel extends WorkerKernel {
  isBroken = false;

  override handleAll(events: readonly WorkerEvent[], nowMs: number): readonly Instruction[] {
    if (this.isBroken) throw new Error('planted: a table is not what it was');
    return super.handleAll(events, nowMs);
  }
}

it('a worker whose kernel throws ends with the reason, and its tasks and results are computed elsewhere', async () => {
  const log = new MemoryLog();
  const scheduler = await startScheduler({ log: new MemoryLog() }, 'tcp://127.0.0.1:0');
  onTestFinished(() => scheduler.close());
  const { cluster } = scheduler.scheduler;
  let kernel: BreakingKernel | undefined;
  const planted = byFactory(WorkerKernel, (services) => {
    const identity = services.get(WORKER_IDENTITY);
    kernel = new BreakingKernel(kernelSettings(services.get(WORKER_OPTIONS), identity));
    return kernel;
  });
  const common = { executor: 'inline', isGuest: true, threads: 2 } as const;
  const breaking = await startWorker(scheduler.address, {
    ...{ ...common, name: 'breaking', log, provide: [planted] },
  });
  const client = await Client.connect(scheduler.address);
  onTestFinished(() => client.close());
  const held = client.map(slowSquare, Array(4).fill(1), [1, 2, 3, 4]);
  expect(await client.gather(held)).toEqual([1, 4, 9, 16]);
  const sound = await startWorker(scheduler.address, { ...common, name: 'sound', log });
  onTestFinished(() => sound.close());
  const running = client.map(
    slowSquare,
    Array(12).fill(50),
    Array.from({ length: 12 }, (_, x) => x),
  );
  await expect
    .poll(() => cluster.workers.get(breaking.address)?.processing.size)
    .toBeGreaterThan(0);
  kernel!.isBroken = true;
  const { reason, error } = await breaking.ended;
  expect(reason).toBe(`the worker ${breaking.address} closes: planted: a table is not what it was`);
  expect(error).toMatchObject({ code: 'ERR_INVARIANT' });
  await expect(breaking.closed).rejects.toThrow('planted');
  expect(log.text).toContain('worker closes');
  await expect.poll(() => [...cluster.workers.keys()]).toEqual([sound.address]);
  expect(await client.gather(running)).toEqual(Array.from({ length: 12 }, (_, x) => x * x));
  expect(await client.gather(client.map(slowSquare, Array(4).fill(1), held))).toEqual([
    1, 16, 81, 256,
  ]);
  await breaking.close();
});
