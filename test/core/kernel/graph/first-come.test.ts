/** Tasks of equal priority run first come, first served. */
import { expect, it } from 'vitest';
import { SchedulerEnv } from '../../../kit/env.ts';

/** In an order that is neither that of the alphabet nor its reverse. */
const KEYS = Array.from('qwertyuiopas', (letter) => `${letter}-task`);

/** Twelve submissions of one task, which share a generation because they come within the fifo timeout. */
function submitApart(env: SchedulerEnv, keys: readonly string[] = KEYS): void {
  for (const key of keys) env.submit({ [key]: [] }, { fifoTimeoutMs: 60_000 });
}

it('tasks that are queued leave the queue in the order of their submissions', () => {
  const env = new SchedulerEnv();
  env.addWorker('w1', { threads: 1 });
  const keys = [7, 3, 11, 0, 9, 1, 5].map((n) => `('r-1', ${n})`);
  submitApart(env, keys);
  const begun: string[] = [];
  while (begun.length < keys.length) {
    const [task] = [...env.worker('w1').processing].sort((a, b) => a.runId - b.runId);
    begun.push(task!.key);
    env.finish(task!.key);
  }
  expect(begun).toEqual(keys);
});

it('tasks that become ready at once are assigned in the order of their submissions', () => {
  const env = new SchedulerEnv();
  submitApart(env);
  env.addWorker('w1', { threads: 1 });
  const assigned = env
    .takeWorkerMessages('w1')
    .flatMap((m) => (m.op === 'compute-task' ? [m] : []));
  while (assigned.length < KEYS.length) {
    env.finish(assigned.at(-1)!.key);
    assigned.push(
      ...env.takeWorkerMessages('w1').flatMap((m) => (m.op === 'compute-task' ? [m] : [])),
    );
  }
  expect(assigned.map(({ key }) => key)).toEqual(KEYS);
  expect(assigned.map(({ arrival }) => arrival)).toEqual(KEYS.map((_key, index) => index));
});

it('a task that is submitted again keeps its place', () => {
  const env = new SchedulerEnv();
  submitApart(env);
  env.submit({ [KEYS[5]!]: [] }, { fifoTimeoutMs: 60_000 });
  env.submit({ late: [] }, { fifoTimeoutMs: 60_000 });
  const { arrival } = env.task(KEYS[5]!);
  expect(arrival).toBeLessThan(env.task(KEYS[6]!).arrival);
  expect(env.task('late').arrival).toBeGreaterThan(env.task(KEYS[11]!).arrival);
});
