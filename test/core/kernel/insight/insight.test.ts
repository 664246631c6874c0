import { describe, expect, it } from 'vitest';
import { SHADOW_FAILURES_MAX } from '../../../../core/api/insight.ts';
import type { Ordering, Queuing, WorkerSelection } from '../../../../core/api/policies.ts';
import { depthFirst } from '../../../../policies/ordering/depth-first.ts';
import { coAssign } from '../../../../policies/queuing/co-assign.ts';
import { SchedulerEnv } from '../../../kit/env.ts';
import { graphTasks } from '../../../kit/graph.ts';
import { ranksOf } from '../../../kit/orders.ts';
import { made } from '../../../kit/made.ts';

describe('why', () => {
  it('an unknown key is said to be unknown', () => {
    const why = new SchedulerEnv().kernel.insight.why('nothing');
    expect(why).toMatchObject({ state: 'unknown', decisions: [], isRecording: false, story: [] });
    expect(why.now[0]).toContain('never submitted');
  });

  it('a waiting task names its inputs and who wants it', () => {
    const env = new SchedulerEnv();
    env.addWorkers(1);
    env.submit({ a: [], b: ['a'] });
    const { state, now } = env.kernel.insight.why('b');
    expect(state).toBe('waiting');
    expect(now).toEqual(['waits for 1 of 1 inputs: a (processing)', 'wanted by c']);
    expect(env.kernel.insight.why('a').now.at(-1)).toBe('kept for b');
  });

  it('a task of a journal waits for the workers that the scheduler had', () => {
    const env = new SchedulerEnv();
    env.addWorker('w1', {});
    env.submit({ a: [], b: ['a'] });
    env.kernel.handle({ op: 'begin-recovery', nextRunId: 9, stimulusId: 'recover' }, 0);
    const [first, second] = env.kernel.insight.why('b').now;
    const address = env.kernel.cluster.workersByRank[0]?.address ?? 'none';
    expect(first).toContain(`waits for 1 of the workers that it had (${address})`);
    expect(second).toMatch('waits for 1 of 1 inputs');
    env.kernel.handle({ op: 'end-recovery', stimulusId: 'recovered' }, 1);
    expect(env.kernel.insight.why('b').now[0]).not.toContain('journal');
  });

  it('a restriction that no worker can meet is shown with the available workers', () => {
    const env = new SchedulerEnv();
    env.addWorker('w1', { resources: { GPU: 1 } });
    env.kernel.insight.recordDecisions(10);
    env.submit({ a: { resources: { GPU: 2 } } });
    const { state, now, decisions } = env.kernel.insight.why('a');
    expect(state).toBe('no-worker');
    expect(now[0]).toBe('no running worker satisfies its restrictions: 2 GPU (at most 1 on one)');
    expect(decisions.map(({ outcome, rule }) => [outcome, rule])).toEqual([['no-worker', now[0]]]);
  });

  it('nothing is recorded until that is requested', () => {
    const env = new SchedulerEnv();
    env.addWorkers(1);
    env.submit({ a: [] });
    env.kernel.insight.recordDecisions(10);
    env.submit({ b: [] });
    expect(env.kernel.insight.why('a').decisions).toEqual([]);
    expect(env.kernel.insight.why('b').decisions).toHaveLength(1);
    env.kernel.insight.recordDecisions(0);
    expect(env.kernel.insight.why('b')).toMatchObject({ decisions: [], isRecording: false });
  });

  it('the ring keeps the newest decisions', () => {
    const env = new SchedulerEnv();
    env.addWorkers(1);
    env.kernel.insight.recordDecisions(2);
    for (const key of ['a', 'b', 'c']) env.submit({ [key]: [] });
    const kept = ['a', 'b', 'c'].map((key) => env.kernel.insight.why(key).decisions.length);
    expect(kept).toEqual([0, 1, 1]);
  });

  it('a placement shows the candidates, their scores and the rule that chose', () => {
    const env = new SchedulerEnv();
    env.addWorkers(3);
    env.submit({ a: [], b: [], sum: ['a', 'b'] });
    const [big, small] = ['a', 'b'].map((key) => env.task(key).processingOn?.address);
    env.finish('a', { nbytes: 5_000_000 });
    env.kernel.insight.recordDecisions(10);
    env.finish('b', { nbytes: 1000 });
    const [decision] = env.kernel.insight.why('sum').decisions;
    expect(decision).toMatchObject({
      kind: 'placement',
      policy: 'earliest-start',
      outcome: big,
      rule: 'lowest score among 2 workers that hold inputs',
      candidateCount: 2,
    });
    expect(decision?.candidates.map(({ worker, missingBytes }) => [worker, missingBytes])).toEqual([
      [big, 1000],
      [small, 5_000_000],
    ]);
    expect(decision?.candidates[0]?.score).toBeLessThan(decision?.candidates[1]?.score ?? 0);
  });

  it('a queued task shows that no worker has an open slot', () => {
    const env = new SchedulerEnv();
    env.addWorkers(2);
    env.kernel.insight.recordDecisions(100);
    env.submit(Object.fromEntries(Array.from({ length: 9 }, (_, n) => [`x-${n}`, []])));
    const queued = env.kernel.insight.why('x-8');
    expect(queued.state).toBe('queued');
    expect(queued.decisions[0]).toMatchObject({ policy: 'root-ish', outcome: 'queued' });
    expect(queued.decisions[0]?.rule).toContain('no worker has an open slot');
    expect(queued.now[0]).toMatch(/^held back in the scheduler, one of 5: 0 of 2 workers/);
  });
});

describe('a shadow', () => {
  const lastWorker: WorkerSelection = {
    select: (_task, candidates) => candidates.at(-1),
  };

  it('decides nothing, and shows on which tasks it differs and what it expects', () => {
    const env = new SchedulerEnv();
    env.addWorkers(3);
    env.submit({ a: [], b: [], sum: ['a', 'b'] });
    const [big, small] = ['a', 'b'].map((key) => env.task(key).processingOn?.address);
    env.finish('a', { nbytes: 5_000_000 });
    env.kernel.insight.startShadow('workerSelection', { name: 'last', policy: lastWorker });
    env.finish('b', { nbytes: 1000 });
    expect(env.task('sum').processingOn?.address).toBe(big);
    const report = env.kernel.insight.shadowReport('workerSelection');
    expect(report).toMatchObject({
      shadow: 'last',
      active: 'earliest-start',
      decisions: 1,
      differing: 1,
      savedBytes: 1000 - 5_000_000,
      failures: 0,
    });
    expect(report?.gainS).toBeLessThan(0);
    expect(report?.examples).toMatchObject([{ subject: 'sum', active: big, shadow: small }]);
  });

  it('that throws is counted, not called any more in the end, and affects nothing else', () => {
    const env = new SchedulerEnv();
    env.addWorkers(2);
    const broken: WorkerSelection = {
      score: () => {
        throw new Error('out of order');
      },
      pickFromPool: () => {
        throw new Error('out of order');
      },
    };
    env.kernel.insight.startShadow('workerSelection', { name: 'broken', policy: broken });
    for (let n = 0; n < 20; n++) env.submit({ [`single${n}`]: [] });
    expect(env.kernel.insight.shadowReport('workerSelection')).toMatchObject({
      decisions: 0,
      differing: 0,
      failures: SHADOW_FAILURES_MAX,
      lastFailure: 'threw: out of order',
    });
    expect(env.policyFailures).toEqual([]);
    expect(env.kernel.insight.stopShadow('workerSelection')?.failures).toBe(SHADOW_FAILURES_MAX);
    expect(env.kernel.insight.shadowReport('workerSelection')).toBeUndefined();
  });

  it('for queuing keeps its own turns, so that the active policy continues as without it', () => {
    const roots = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`x-${n}`, []]));
    const places = (isShadowed: boolean): unknown => {
      const env = new SchedulerEnv({ policies: { queuing: made(coAssign) } });
      env.addWorkers(4);
      if (isShadowed) {
        const policy: Queuing = made(coAssign);
        env.kernel.insight.startShadow('queuing', { name: 'co-assign', policy });
      }
      env.submit(roots);
      if (isShadowed) {
        const report = env.kernel.insight.shadowReport('queuing');
        expect(report).toMatchObject({ decisions: 40, failures: 0, differing: 0 });
      }
      return env.states;
    };
    expect(places(true)).toEqual(places(false));
  });

  it('for ordering compares the live results of both orders', () => {
    const reversed: Ordering = {
      order: (tasks, keys) => {
        // Leaves first: all of them are alive at once.
        const ranks = ranksOf(made(depthFirst), tasks, keys);
        return tasks.map((task, index) =>
          task.dependencies.length === 0
            ? (ranks[index] as number)
            : (ranks[index] as number) + 1000,
        );
      },
    };
    const env = new SchedulerEnv();
    env.addWorkers(1);
    env.kernel.insight.startShadow('ordering', { name: 'wide', policy: reversed });
    const graph = {
      ...Object.fromEntries(Array.from({ length: 8 }, (_, n) => [`leaf-${n}`, []])),
      ...Object.fromEntries(
        Array.from({ length: 4 }, (_, n) => [`pair-${n}`, [`leaf-${2 * n}`, `leaf-${2 * n + 1}`]]),
      ),
      ...Object.fromEntries(
        Array.from({ length: 2 }, (_, n) => [`quad-${n}`, [`pair-${2 * n}`, `pair-${2 * n + 1}`]]),
      ),
      top: ['quad-0', 'quad-1'],
    };
    const tasks = graphTasks(graph);
    env.send({ op: 'update-graph', client: 'c', tasks, keys: ['top'] });
    const report = env.kernel.insight.shadowReport('ordering');
    expect(report).toMatchObject({ decisions: 1, differing: 1, failures: 0 });
    expect(report?.examples).toMatchObject([
      { active: 'at most 4 live results', shadow: 'at most 8 live results' },
    ]);
  });

  it('for fairness shows which submissions it would have put elsewhere', () => {
    const env = new SchedulerEnv();
    env.addWorkers(1);
    const newestFirst = { generations: ({ generation }: { generation: number }) => -generation };
    env.kernel.insight.startShadow('fairness', { name: 'newest-first', policy: newestFirst });
    for (const key of ['a', 'b', 'c']) env.advance(1).submit({ [key]: [] });
    const report = env.kernel.insight.shadowReport('fairness');
    expect(report).toMatchObject({ decisions: 3, differing: 2 });
    expect(report?.examples.map(({ active, shadow }) => [active, shadow])).toEqual([
      ['behind 1 of the latest submissions', 'behind 0 of them'],
      ['behind 2 of the latest submissions', 'behind 0 of them'],
    ]);
  });
});
