import { describe, expect, it } from 'vitest';
import type { ClusterState } from '../../../../core/state/cluster.ts';
import { SchedulerEnv } from '../../../kit/env.ts';
import { numbered } from '../../../kit/graph.ts';

/** A cluster with a task in every state that lasts. */
function everything(): SchedulerEnv {
  const env = new SchedulerEnv();
  env.addWorkers(2);
  env.submit({ base: [], done: ['base'] }, { keys: ['base', 'done'] });
  env.finish('base');
  env.submit({ bad: [], lonely: { workers: ['tcp://w9:1'] }, next: ['bad2'], bad2: [] });
  env.fail('bad');
  env.submit(numbered('r', 9));
  expect(new Set(Object.values(env.states).map((state) => state.split(' ')[0]))).toEqual(
    new Set(['memory', 'processing', 'erred', 'no-worker', 'waiting', 'queued']),
  );
  return env;
}

/** What may be broken by a bug, and what the check says. */
const BREACHES: readonly (readonly [string, (cluster: ClusterState) => void, RegExp])[] = [
  ['a lost dependent', ({ tasks }) => void tasks.delete('done'), /base \(memory\).*dependent done/],
  ['a wrong count of waiters', ({ tasks }) => tasks.get('base')!.waiterCount++, /waiters wrongly/],
  [
    'a wrong count of missing inputs',
    ({ tasks }) => tasks.get('next')!.missingDependencyCount++,
    /next \(waiting\) counts 2 missing/,
  ],
  [
    'a result on a worker that does not list it',
    ({ tasks, workers }) => void workers.get('tcp://w1:1')!.hasWhat.delete(tasks.get('base')!),
    /not listed by its holder/,
  ],
  [
    'a task that its worker does not list',
    ({ tasks }) => tasks.get('done')!.processingOn!.processing.delete(tasks.get('done')!),
    /not listed by its worker/,
  ],
  [
    'a failure without anything to blame',
    ({ tasks }) => void (tasks.get('bad')!.blame = undefined),
    /bad \(erred\) blames nothing/,
  ],
  [
    'a task in no-worker that is not listed',
    ({ unrunnable }) => unrunnable.clear(),
    /lonely \(no-worker\) is unrunnable, or not/,
  ],
  [
    'a queued task outside of the queue',
    ({ queued }) => queued.clear(),
    /\(queued\) is in the queue, or not/,
  ],
  ['a wrong sum of threads', (cluster) => cluster.totalThreads++, /totalThreads is 3/],
  [
    'a wrong sum of stored bytes',
    ({ workers }) => workers.get('tcp://w1:1')!.nbytes++,
    /counts 101 bytes/,
  ],
  ['a wrong sum of bytes to fetch', (cluster) => cluster.networkBytes++, /networkBytes is/],
  [
    'a wrong sum of work',
    (cluster) => void (cluster.computeOccupancyS += 1),
    /computeOccupancyS is/,
  ],
  [
    'a running worker outside of the running ones',
    ({ running }) => running.clear(),
    /is running, or in running/,
  ],
  ['an alias of nobody', ({ aliases }) => void aliases.set('ghost', 'tcp://gone:1'), /alias/],
  [
    'an address that haunts its host',
    ({ hosts }) => void hosts.get('w1')!.add('tcp://gone:1'),
    /haunts/,
  ],
  [
    'a one-sided wish',
    ({ clients, tasks }) => void clients.get('c')!.wantsWhat.add(tasks.get('bad2')!),
    /wants bad2 one-sidedly/,
  ],
  [
    'a task that is not needed',
    (cluster) => void cluster.newTask('x'),
    /x \(released\) is known although no client wants it/,
  ],
];

describe('validate mode notices', () => {
  it.each(BREACHES)('%s', (_name, breach, message) => {
    const env = everything();
    breach(env.cluster);
    expect(() => env.send({ op: 'keep-alive', worker: 'tcp://w1:1' })).toThrow(message);
  });
});

it('without validate mode nothing is checked', () => {
  const env = new SchedulerEnv({ kernel: { validate: false } });
  env.addWorkers(1);
  env.cluster.totalThreads++;
  expect(() => env.send({ op: 'keep-alive', worker: 'tcp://w1:1' })).not.toThrow();
});

it('a complaint carries the story of the task', () => {
  const env = everything();
  env.task('next').missingDependencyCount++;
  expect(() => env.send({ op: 'keep-alive', worker: 'tcp://w1:1' })).toThrow(
    /story:\n {2}next: released -> waiting/,
  );
});
