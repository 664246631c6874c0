import { describe, expect, it } from 'vitest';
import type { WorkerSelection } from '../../../core/api/policies.ts';
import { balanced } from '../../../policies/worker-selection/balanced.ts';
import { earliestStart } from '../../../policies/worker-selection/earliest-start.ts';
import { localityFirst } from '../../../policies/worker-selection/locality-first.ts';
import { SchedulerEnv } from '../../kit/env.ts';
import type { GraphTask } from '../../../core/messages/stimulus.ts';
import { made } from '../../kit/made.ts';

const POLICIES: readonly (readonly [string, () => WorkerSelection])[] = [
  ['earliest-start', () => made(earliestStart)],
  ['locality-first', () => made(localityFirst)],
  ['balanced', () => made(balanced)],
  ['balanced, looking at two workers only', () => made(balanced, { holders: 1, others: 1 })],
];

/** Hard restrictions, each of which w3 alone satisfies. */
const RESTRICTIONS: readonly (readonly [string, Partial<GraphTask>])[] = [
  ['worker', { workers: ['tcp://w3:1'] }],
  ['worker name', { workers: ['w3'] }],
  ['host', { hosts: ['w3'] }],
  ['resource', { resources: { gpu: 2 } }],
  ['host and resource', { hosts: ['w2', 'w3'], resources: { gpu: 2 } }],
];

describe.each(POLICIES)('with %s', (_name, create) => {
  /** w1 holds the input x and all do something; w3 has gpus, and the most to do. */
  function cluster(names = ['w1', 'w2', 'w3', 'w4', 'w5']): SchedulerEnv {
    const env = new SchedulerEnv({ policies: { workerSelection: create() } });
    for (const name of names) {
      env.addWorker(name, name === 'w3' ? { resources: { gpu: 2 } } : { resources: { gpu: 1 } });
    }
    env.scatter({ x: ['w1'] });
    if (names.includes('w3')) {
      for (const load of ['load1-x', 'load2-x']) env.submit({ [load]: { workers: ['w3'] } });
    }
    return env;
  }

  it.each(RESTRICTIONS)('a task goes where its %s restriction allows', (_what, restricted) => {
    const env = cluster();
    env.submit({ a: { deps: ['x'], ...restricted }, b: restricted });
    expect(env.states).toMatchObject({ a: 'processing w3', b: 'processing w3' });
    expect(env.policyFailures).toEqual([]);
  });

  it.each(RESTRICTIONS)('a hard %s restriction waits for a worker', (_what, restricted) => {
    const env = cluster(['w1']);
    env.submit({ a: { deps: ['x'], ...restricted } });
    expect(env.state('a')).toBe('no-worker');
    env.addWorker('w2', {});
    expect(env.state('a')).toBe('no-worker');
    env.addWorker('w3', { resources: { gpu: 2 } });
    expect(env.states).toMatchObject({ a: 'processing w3' });
  });

  it.each(RESTRICTIONS)('a loose %s restriction takes another worker', (_what, restricted) => {
    const env = cluster(['w1', 'w2']);
    env.submit({ a: { deps: ['x'], allowOtherWorkers: true, ...restricted } });
    expect(env.state('a')).toBe('processing');
    const other = cluster();
    other.submit({ a: { deps: ['x'], allowOtherWorkers: true, ...restricted } });
    expect(other.states).toMatchObject({ a: 'processing w3' });
  });

  it('a paused worker gets nothing, even what is restricted to it', () => {
    const env = cluster();
    env.setStatus('w3', 'paused');
    env.submit({ a: { workers: ['w3'] }, b: ['x'], c: [] });
    expect(env.state('a')).toBe('no-worker');
    expect(env.worker('w3').processing.size).toBe(2);
    env.setStatus('w3', 'running');
    expect(env.states).toMatchObject({ a: 'processing w3' });
  });

  it('an actor goes to the worker with the fewest actors', () => {
    const env = cluster(['w1', 'w2']);
    env.submit({ a1: { deps: ['x'], actor: true } });
    env.submit({ a2: { deps: ['x'], actor: true } });
    const where = new Set([env.task('a1').processingOn?.name, env.task('a2').processingOn?.name]);
    expect(where).toEqual(new Set(['w1', 'w2']));
  });
});
