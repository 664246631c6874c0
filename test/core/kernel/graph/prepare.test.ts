import { expect, it } from 'vitest';
import type { KernelSlots } from '../../../../core/api/policies.ts';
import type { TaskView } from '../../../../core/api/views.ts';
import { SchedulerEnv } from '../../../kit/env.ts';
import { builtinPolicies } from '../../../kit/ports.ts';

/** Policies that write down what they are shown. */
function watching(): { policies: KernelSlots; seen: string[] } {
  const seen: string[] = [];
  const note =
    (who: string) =>
    (tasks: readonly TaskView[]): void =>
      void seen.push(`${who}: ${tasks.map(({ key, state }) => `${key} ${state}`).join(', ')}`);
  const { workerSelection, queuing, ...others } = builtinPolicies();
  const policies = {
    ...others,
    queuing: { ...queuing, prepare: note('queuing') },
    workerSelection: { ...workerSelection, prepare: note('selection') },
  };
  return { policies, seen };
}

it('a graph is shown to the policies when it is linked and before anything is placed', () => {
  const { policies, seen } = watching();
  const env = new SchedulerEnv({ policies });
  env.addWorkers(1);
  env.submit({ c: ['b'], a: [], b: ['a'] });
  expect(seen).toEqual([
    'queuing: a released, b released, c released',
    'selection: a released, b released, c released',
  ]);
});

it('tasks that are known already are not shown again, nor are graphs without any new one', () => {
  const { policies, seen } = watching();
  const env = new SchedulerEnv({ policies });
  env.submit({ a: [] });
  env.submit({ a: [], b: ['a'] });
  env.submit({ b: ['a'] });
  env.scatter({ x: [] });
  expect(seen.filter((line) => line.startsWith('queuing'))).toEqual([
    'queuing: a released',
    'queuing: b released',
  ]);
});

it('a policy that comes later is shown the tasks that are there, once', () => {
  const { policies, seen } = watching();
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.scatter({ x: ['w1'] });
  env.submit({ a: ['x'], b: ['a'] });
  const { kernel } = env;
  const { ports } = kernel['scope'];
  const queuing = { name: 'watching', policy: policies.queuing };
  kernel.replacePorts({ ...ports, queuing });
  kernel.replacePorts({ ...ports, queuing });
  expect(seen).toEqual(['queuing: a processing, b waiting']);
});
