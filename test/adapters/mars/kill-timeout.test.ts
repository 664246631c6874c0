import { expect, test } from 'vitest';
import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { task } from '../../../adapters/client/index.ts';
import { SchedulingApi } from '../../../adapters/mars/mars.ts';
import type { TaskFunction } from '../../../adapters/tasks/index.ts';
import { tasks } from '../fixtures/sample-tasks.mjs';

const { spin, double } = tasks as unknown as Record<'spin' | 'double', TaskFunction<[]>>;

/** Cancels a subtask that computes for ever, in a thread. */
async function cancelSpinning(scheduling: object) {
  const config = { worker: { killGrace: '1 hour' }, scheduling };
  await using cluster = await LocalCluster.start({ workers: 1, threads: 1, config });
  const client = await cluster.client();
  const api = new SchedulingApi(client);
  await api.addSubtasks([{ id: 'spin', call: task(spin) }]);
  const future = api.future('spin');
  // Its worker has begun it when it says so.
  while (
    (
      await client.command<[string, string[]][]>('executing', { workers: addresses(cluster) })
    )[0]?.[1].length !== 1
  );
  const { cancelled, running } = await api.cancelSubtasks(['spin'], { killTimeoutMs: 30 });
  expect(cancelled).toEqual(['spin']);
  expect(await future.error()).toMatchObject({ code: 'ERR_CANCELLED' });
  return {
    running,
    next:
      running.length === 0
        ? await client.submit(double as TaskFunction<[n: number], number>, 4).result()
        : undefined,
  };
}

function addresses({ scheduler }: LocalCluster): string[] {
  return [...scheduler.cluster.workers.keys()];
}

test('a run that does not stop in time loses its thread, and another one takes its place', async () => {
  expect(await cancelSpinning({})).toEqual({ running: [], next: 8 });
});

test('where slots are not killed the run continues, and the answer says so', async () => {
  expect(await cancelSpinning({ enableKillSlot: false })).toEqual({ running: ['spin'] });
});
