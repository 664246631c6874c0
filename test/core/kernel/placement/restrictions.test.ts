import { describe, expect, it } from 'vitest';
import { validWorkers } from '../../../../core/kernel/restrictions.ts';
import { SchedulerEnv, type WorkerSpec } from '../../../kit/env.ts';
import type { TerseTask } from '../../../kit/graph.ts';

const WORKERS: Readonly<Record<string, WorkerSpec>> = {
  w1: { host: 'h1', resources: { gpu: 1 } },
  w2: { host: 'h1', resources: { gpu: 2, disk: 1 } },
  w3: { host: 'h2' },
};

/** Names of the workers that are valid for such a task, `any` without restriction. */
function valid(task: TerseTask, prepare?: (env: SchedulerEnv) => void): string[] | 'any' {
  const env = new SchedulerEnv();
  for (const [name, spec] of Object.entries(WORKERS)) env.addWorker(name, spec);
  prepare?.(env);
  env.submit({ task });
  const workers = validWorkers(env.cluster, env.task('task'));
  return workers === undefined ? 'any' : [...workers].map(({ name }) => name);
}

it('without restrictions any worker is valid', () => {
  expect(valid([])).toBe('any');
});

it('addresses name workers, connected or not', () => {
  expect(valid({ workers: ['tcp://w1:1', 'tcp://gone:1'] })).toEqual(['w1']);
});

it('a host name means every worker there', () => {
  expect(valid({ hosts: ['h1'] })).toEqual(['w1', 'w2']);
});

it('the name of a worker means the worker that has the name at the time', () => {
  expect(valid({ workers: ['w2'] })).toEqual(['w2']);
  const again = (env: SchedulerEnv): void => {
    env.removeWorker('w2', { expected: true });
    env.addWorker('second', { name: 'w2', host: 'h2' });
  };
  expect(valid({ workers: ['w2'] }, again)).toEqual(['w2']);
});

it('a name that no worker has is the name of a host', () => {
  expect(valid({ workers: ['h1'] })).toEqual(['w1', 'w2']);
  expect(valid({ workers: ['nobody'] })).toEqual([]);
});

it('among hosts the name of a worker stands for its host', () => {
  expect(valid({ hosts: ['w2'] })).toEqual(['w1', 'w2']);
});

it('what suits a worker is what is valid for it', () => {
  const tasks: TerseTask[] = [
    { workers: ['w2'] },
    { workers: ['h1'] },
    { workers: ['tcp://w1:1', 'w3'] },
    { hosts: ['w2'] },
    { resources: { gpu: 2 } },
    { workers: ['nobody'], allowOtherWorkers: true },
  ];
  for (const task of tasks) {
    const env = new SchedulerEnv();
    for (const [name, spec] of Object.entries(WORKERS)) env.addWorker(name, spec);
    env.submit({ task });
    const suited = Object.keys(WORKERS).filter(
      (name) => env.cluster.suits(env.task('task'), env.worker(name)) === 'well',
    );
    expect(suited).toEqual(
      [...(validWorkers(env.cluster, env.task('task')) ?? [])].map(({ name }) => name),
    );
  }
});

it('addresses and hosts add up', () => {
  expect(valid({ workers: ['tcp://w1:1'], hosts: ['h2'] })).toEqual(['w1', 'w3']);
});

it('a resource is compared with what a worker offers in all', () => {
  expect(valid({ resources: { gpu: 2 } })).toEqual(['w2']);
});

it('what is in use does not matter: the task waits on its worker', () => {
  const inUse = (env: SchedulerEnv): void => void env.submit({ other: { resources: { gpu: 2 } } });
  expect(valid({ resources: { gpu: 2 } }, inUse)).toEqual(['w2']);
});

it('every resource has to be there', () => {
  expect(valid({ resources: { gpu: 1, disk: 1 } })).toEqual(['w2']);
  expect(valid({ resources: { gpu: 1, tape: 1 } })).toEqual([]);
});

it('resources narrow hosts down', () => {
  expect(valid({ hosts: ['h2'], resources: { gpu: 1 } })).toEqual([]);
});

it('a worker that does not run is not valid', () => {
  expect(valid({ hosts: ['h1'] }, (env) => env.setStatus('w1', 'paused'))).toEqual(['w2']);
});

it('a resource that a worker does not offer any more is gone', () => {
  const poorer = (env: SchedulerEnv): void => env.heartbeat('w2', { resources: { gpu: 0 } });
  expect(valid({ resources: { gpu: 1 } }, poorer)).toEqual(['w1']);
});

it('a task with loose restrictions runs anywhere when no worker satisfies them', () => {
  const env = new SchedulerEnv();
  env.addWorkers(1);
  env.submit({ a: { workers: ['tcp://gone:1'], allowOtherWorkers: true } });
  expect(env.states).toEqual({ a: 'processing w1' });
});

it('a task with loose restrictions prefers who satisfies them', () => {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ a: { workers: ['tcp://w2:1'], allowOtherWorkers: true } });
  expect(env.states).toEqual({ a: 'processing w2' });
});

it('processing tasks occupy resources until they are done', () => {
  const env = new SchedulerEnv();
  env.addWorker('w1', { resources: { gpu: 1 } });
  env.submit({ a: { resources: { gpu: 1 } }, b: { resources: { gpu: 1 } } });
  expect(env.worker('w1').usedResources.get('gpu')).toBe(2);
  env.finish('a');
  env.fail('b');
  expect(env.worker('w1').usedResources.get('gpu')).toBe(0);
});

describe('a task whose worker died', () => {
  const died = (avoidUsedWorkers: boolean): SchedulerEnv => {
    const env = new SchedulerEnv({ kernel: { avoidUsedWorkers } });
    env.addWorker('w1');
    env.submit({ a: [] });
    env.removeWorker('w1');
    return env.ignoreMessages();
  };

  it('is not placed on a worker of that name while there is another one', () => {
    const env = died(true);
    env.addWorker('w2', { status: 'paused' });
    env.addWorker('w1', { status: 'paused' });
    env.setStatus('w2', 'running');
    expect(env.states['a']).toBe('processing w2');
  });

  it('goes back there when there is no other one', () => {
    const env = died(true);
    env.addWorker('w1');
    expect(env.states['a']).toBe('processing w1');
  });

  it('chooses among all others when it is placed again', () => {
    const env = new SchedulerEnv({ kernel: { avoidUsedWorkers: true } });
    env.addWorkers(1);
    env.submit({ a: [] });
    env.addWorker('w2', { threads: 4 });
    env.removeWorker('w1');
    env.addWorker('w1', { threads: 64 });
    env.reschedule('a');
    expect(env.states['a']).toBe('processing w2');
  });

  it('may be placed anywhere when that is not asked for', () => {
    const env = new SchedulerEnv();
    env.addWorkers(1);
    env.submit({ a: [] });
    env.removeWorker('w1');
    env.addWorker('w1');
    expect(env.states['a']).toBe('processing w1');
    expect(env.task('a').usedWorkers).toBeUndefined();
  });
});
