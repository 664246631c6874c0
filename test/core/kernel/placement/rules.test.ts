/** Rules of several extensions take part in the decisions of the kernel. */
import { describe, expect, it } from 'vitest';
import type { Rule } from '../../../../core/api/rules.ts';
import { shieldedPolicy } from '../../../../core/plugin-host/policy-slots.ts';
import { type EnvOptions, SchedulerEnv } from '../../../kit/env.ts';
import { numbered } from '../../../kit/graph.ts';
import type { OwnPolicies } from '../../../kit/ports.ts';

/** Rules by name, as those of users, which see views. */
function withRules(
  rules: Readonly<Record<string, Rule & { weight?: number }>>,
  { policies, ...options }: Partial<EnvOptions> = {},
): SchedulerEnv {
  const own: OwnPolicies['rules'] = Object.entries(rules).map(([name, { weight = 1, ...rule }]) => {
    return { name, weight, policy: shieldedPolicy('rules', rule) };
  });
  return new SchedulerEnv({ ...options, policies: { ...policies, rules: own } });
}

const isFor =
  (prefix: string): Rule['concerns'] =>
  ({ key }) =>
    key.startsWith(prefix);

/** A worker is named by what it has: `gpu-1`. */
const gpu: Rule = {
  concerns: isFor('train'),
  filter: (_task, { name }) => name.startsWith('gpu') || { refuse: 'it has no GPU' },
};
const north: Rule = { concerns: isFor('train'), filter: (_task, { name }) => name.endsWith('n') };

describe('filter', () => {
  it('a task goes where no rule refuses it, and other tasks anywhere', () => {
    const env = withRules({ gpu, north });
    for (const name of ['cpu-n', 'gpu-s', 'gpu-n']) env.addWorker(name);
    env.submit({ 'train-1': [], 'train-2': [], other: [] });
    expect(env.states).toEqual({
      'train-1': 'processing gpu-n',
      'train-2': 'processing gpu-n',
      other: 'processing cpu-n',
    });
  });

  it('a task that is refused everywhere says by which rules, and starts on the first worker that will do', () => {
    const env = withRules({ gpu, north });
    env.addWorker('cpu-n');
    env.addWorker('gpu-s');
    env.kernel.insight.recordDecisions(10);
    env.submit({ 'train-1': [] });
    const { state, now, decisions } = env.kernel.insight.why('train-1');
    const reason =
      'the rule gpu refuses 1 of 2 workers (it has no GPU), the rule north refuses 1 of 2 workers';
    expect([state, now[0], decisions[0]?.rule]).toEqual(['no-worker', reason, reason]);
    env.addWorker('gpu-n');
    expect(env.states['train-1']).toBe('processing gpu-n');
    env.submit({ 'train-2': [] });
    const { rule } = env.kernel.insight.why('train-2').decisions[0]!;
    expect(rule).toMatch(/^the only candidate: .*; the rule gpu refuses 1 of 3 .* north refuses 1/);
  });

  it('a task with inputs leaves the workers that hold them when a rule refuses these', () => {
    const env = withRules({ gpu });
    env.addWorker('cpu-1');
    env.addWorker('gpu-1');
    env.scatter({ x: ['cpu-1'] });
    env.submit({ 'train-1': ['x'], other: ['x'] });
    expect(env.states).toMatchObject({ 'train-1': 'processing gpu-1', other: 'processing cpu-1' });
  });

  it('a preference for a worker gives way to a rule, and so does every worker', () => {
    const env = withRules({ gpu });
    env.addWorker('cpu-1');
    env.addWorker('gpu-1');
    const preferring = { names: ['cpu-1'], allowOtherWorkers: true };
    env.submit({ 'train-1': preferring });
    expect(env.states).toEqual({ 'train-1': 'processing gpu-1' });
    env.removeWorker('gpu-1', { expected: true });
    expect(env.states).toEqual({ 'train-1': 'no-worker' });
  });

  it('a root-ish task that a filter concerns is not queued, so that it blocks no other', () => {
    const env = withRules({ gpu });
    env.addWorker('cpu-1');
    env.submit({ ...numbered('other', 9), 'train-1': [], 'train-2': [], 'train-3': [] });
    expect(env.state('train-1')).toBe('no-worker');
    expect(env.cluster.queued.size).toBe(7);
    for (let left = 9; left > 0; left--) {
      env.finish([...env.worker('cpu-1').processing][0]!.key);
    }
    expect(env.cluster.queued.size).toBe(0);
  });

  it('a rule that looks at the load of a worker is asked again when the worker has less to do', () => {
    const idle: Rule = { filter: (_task, { processing }) => processing.size === 0 };
    const env = withRules({ idle });
    env.addWorkers(2, { threads: 4 });
    env.submit(numbered('t', 3));
    expect(Object.values(env.states).toSorted()).toEqual([
      ...['no-worker', 'processing w1', 'processing w2'],
    ]);
    env.finish([...env.worker('w1').processing][0]!.key);
    expect(env.worker('w1').processing.size).toBe(1);
  });

  it('a rule may ask which workers suit another task', () => {
    const asking: Rule = {
      concerns: isFor('train'),
      filter: (_task, worker, cluster) =>
        cluster.suits(cluster.tasks.get('other')!, worker) === 'well',
    };
    const env = withRules({ asking, gpu });
    for (const name of ['cpu-1', 'gpu-1']) env.addWorker(name);
    env.submit({ 'train-1': [], other: [] });
    expect(env.states['train-1']).toBe('processing gpu-1');
  });

  it('a task that fails for want of a worker names the rules', () => {
    const env = withRules({ gpu }, { kernel: { noWorkersTimeoutMs: 1000 } });
    env.addWorker('cpu-1');
    env.submit({ 'train-1': [] });
    env.advance(2000).send({ op: 'check-no-workers-timeout' });
    expect(env.task('train-1').blame?.failure.exceptionText).toContain(
      'waited 1000 ms and the rule gpu refuses 1 of 1 workers (it has no GPU)',
    );
  });

  it('no task is stolen for a worker that a rule refuses', () => {
    const env = withRules({ gpu });
    env.addWorker('gpu-1');
    env.addWorker('cpu-1');
    env.submit({ 'train-1': [], 'train-2': [] });
    env.steal('cpu-1', 'train-1', 'train-2');
    expect(env.task('train-2').steal).toBeUndefined();
    env.addWorker('gpu-2');
    env.steal('gpu-2', 'train-2');
    expect(env.task('train-2').steal?.state).toBe('asked');
  });
});

describe('score', () => {
  const bytes: Rule = { score: (_task, { nbytes }) => nbytes };

  it('of the workers that may run a task the one with the lowest sum is chosen', () => {
    const late: Rule = { score: (_task, { rank }) => -rank };
    const env = withRules({ late });
    env.addWorkers(3);
    env.submit({ a: [] });
    expect(env.states).toEqual({ a: 'processing w3' });
  });

  it('scores are brought to 0..1 before they are weighted, whatever their unit is', () => {
    const rank: Rule = { score: (_task, worker) => worker.rank };
    const decide = (weight: number): string | undefined => {
      const env = withRules({ bytes: { ...bytes, weight }, rank: { ...rank, weight: 1 } });
      env.addWorkers(2);
      env.scatter({ big: ['w1'], small: ['w2'] }, 'c', 1_000_000);
      env.scatter({ more: ['w1'] }, 'c', 1);
      env.kernel.insight.recordDecisions(1);
      env.submit({ a: [] });
      const { rule, candidates } = env.kernel.insight.why('a').decisions[0]!;
      expect(rule).toMatch(/^lowest sum of the scores of .* × bytes \+ 1 × rank \+ earliest-start/);
      expect(candidates[0]!.score).toBeLessThan(candidates[1]!.score!);
      return env.states['a'];
    };
    expect(decide(0.5)).toBe('processing w1');
    expect(decide(2)).toBe('processing w2');
  });

  it('the policy of the slot is one scorer among them, and equal sums go by the rule of ties', () => {
    const even: Rule = { score: () => 7 };
    const env = withRules({ even });
    env.addWorkers(2);
    env.scatter({ x: ['w2'] });
    env.submit({ a: ['x'] });
    expect(env.states['a']).toBe('processing w2');
    env.submit({ b: [] });
    expect(env.states['b']).toBe('processing w1');
  });

  it('a policy that selects chooses among those with the lowest sum', () => {
    const half: Rule = { score: (_task, { rank }) => Number(rank < 2) };
    const selected: string[][] = [];
    const env = withRules(
      { half },
      {
        policies: {
          workerSelection: {
            select: (_task, candidates) => {
              selected.push(candidates.map(({ name }) => name));
              return candidates.at(-1);
            },
          },
        },
      },
    );
    env.addWorkers(4);
    env.submit({ a: [] });
    expect([selected, env.states]).toEqual([[['w3', 'w4']], { a: 'processing w4' }]);
  });

  it('root-ish tasks go to the open slot with the lowest sum, and wait when there is none', () => {
    const late: Rule = { score: (_task, { rank }) => -rank };
    const env = withRules({ late });
    env.addWorkers(2);
    env.submit(numbered('r', 8));
    expect(env.states['r-0']).toBe('processing w2');
    expect(env.cluster.queued.size).toBe(4);
  });
});

describe('holds', () => {
  /** One task of a prefix at a time. */
  const one: Rule = {
    concerns: isFor('one'),
    holds: ({ prefix }) => prefix.states.processing > 0,
  };

  it('a task that a rule holds waits, though a slot is open, and holds up no other', () => {
    const env = withRules({ one });
    env.addWorkers(2);
    env.submit({ ...numbered('one', 12), ...numbered('other', 8) });
    expect(env.task('one-0').prefix.states.processing).toBe(1);
    expect(env.kernel.insight.why('one-5').now[0]).toBe('the rule one holds it back');
    const finishAll = (prefix: string): string[] => {
      const finished: string[] = [];
      for (;;) {
        expect(env.task('one-0').prefix.states.processing).toBeLessThanOrEqual(1);
        const tasks = [...env.cluster.tasks.values()].filter(({ key }) => key.startsWith(prefix));
        const next = tasks.find(({ state }) => state === 'processing');
        if (next === undefined) return finished;
        env.finish(next.key);
        finished.push(next.key);
      }
    };
    expect(finishAll('other')).toHaveLength(8);
    expect(finishAll('one')).toHaveLength(12);
  });

  it('each rule that holds a task or refuses workers for it is named, with the reason that it gives', () => {
    const always: Rule = { holds: () => true };
    const night: Rule = { holds: () => ({ hold: 'until seven' }) };
    const env = withRules({ always, night, gpu });
    env.addWorkers(2);
    env.submit({ 'train-1': [] });
    expect(env.kernel.insight.why('train-1').now[0]).toBe(
      'the rule always holds it back, the rule night holds it back (until seven), ' +
        'the rule gpu refuses 2 of 2 workers (it has no GPU)',
    );
  });

  it('a rule that goes by the clock is asked again at heartbeats', () => {
    const night: Rule = { holds: (_task, { nowMs }) => nowMs < 5000 };
    const env = withRules({ night });
    env.addWorkers(1);
    env.submit(numbered('t', 3));
    env.advance(4000).heartbeat('w1');
    expect(env.states['t-0']).toBe('no-worker');
    env.advance(2000).heartbeat('w1');
    expect(env.states['t-0']).toBe('processing w1');
  });

  it('a held task does not fail for want of a worker', () => {
    const always: Rule = { holds: () => true };
    const env = withRules({ always }, { kernel: { noWorkersTimeoutMs: 1000 } });
    env.addWorkers(1);
    env.submit({ a: [] });
    env.advance(2000).send({ op: 'check-no-workers-timeout' });
    expect(env.state('a')).toBe('no-worker');
  });

  it('tasks that were held are queued like others when they may start', () => {
    const early: Rule = { holds: (_task, { tasks }) => tasks.has('gate') };
    const env = withRules({ early });
    env.addWorkers(2);
    env.scatter({ gate: ['w1'] });
    env.submit(numbered('r', 20));
    expect(env.cluster.unrunnable.size).toBe(20);
    env.release('gate');
    env.heartbeat('w1');
    expect(env.worker('w1').processing.size).toBe(2);
    expect(env.cluster.queued.size).toBe(16);
  });

  it('of many that are held only a few are asked about at a time', () => {
    let asked = 0;
    const always: Rule = {
      concerns: isFor('held'),
      holds: () => {
        asked++;
        return true;
      },
    };
    const env = withRules({ always }, { kernel: { validate: false } });
    env.addWorkers(1);
    env.submit({ ...numbered('held', 1000), a: [], b: [] });
    asked = 0;
    env.finish('a');
    expect(asked).toBe(8);
  });
});

it('a task moves only where a rule lets it', () => {
  const near: Rule = {
    concerns: isFor('near'),
    mayMove: (_task, victim, thief) => victim.name.at(-1) === thief.name.at(-1),
  };
  const env = withRules({ near });
  env.addWorker('a-1');
  env.submit({ 'near-1': [], 'near-2': [], other: [] });
  env.addWorker('b-1');
  env.addWorker('b-2');
  env.steal('b-2', 'near-2', 'other');
  expect(env.task('near-2').steal).toBeUndefined();
  expect(env.task('other').steal?.state).toBe('asked');
  env.steal('b-1', 'near-2');
  expect(env.task('near-2').steal?.state).toBe('asked');
});

describe('a rule that fails', () => {
  function boom(): never {
    throw new Error('boom');
  }

  it.each<[string, Rule, RegExp]>([
    ['concerns', { concerns: boom, filter: () => false }, /"bad" threw in concerns: boom; the/],
    ['filter', { filter: boom }, /the rule "bad" threw in filter: boom/],
    [
      'filter',
      { filter: () => 1 as never },
      /with the number 1 instead of true, false or \{ refuse: 'why' \};/,
    ],
    ['score', { score: () => NaN }, /"bad" answered score with the number NaN/],
    ['holds', { holds: () => undefined as never }, /answered holds with a value of the type undef/],
  ])('in %s is named, and the decision is made without it', (_member, bad, message) => {
    const env = withRules({ bad, gpu }, { kernel: { validate: false } });
    for (const name of ['cpu-1', 'gpu-1', 'gpu-2']) env.addWorker(name);
    env.submit({ 'train-1': [] });
    expect(env.states).toEqual({ 'train-1': 'processing gpu-1' });
    const [failure] = env.policyFailures;
    expect(failure).toMatchObject({ policy: 'bad', error: { code: 'ERR_POLICY' } });
    expect(failure?.error.message).toMatch(message);
  });

  it('in mayMove lets the task move', () => {
    const env = withRules({ bad: { mayMove: boom } }, { kernel: { validate: false } });
    env.addWorker('w1');
    env.submit({ a: [], b: [] });
    env.addWorker('w2');
    env.steal('w2', 'b');
    expect(env.task('b').steal?.state).toBe('asked');
    expect(env.policyFailures[0]?.what).toBe('threw in mayMove: boom');
  });
});
