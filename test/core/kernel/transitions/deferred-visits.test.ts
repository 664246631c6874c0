import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { effort } from '../../../kit/effort.ts';
import { SchedulerEnv } from '../../../kit/env.ts';
import { graphTasks, type TerseGraph } from '../../../kit/graph.ts';

const COUNT = 12;
const DEPENDENTS = Array.from({ length: COUNT }, (_, index) => `d-${index}`);
const WIDE: TerseGraph = {
  root: [],
  ...Object.fromEntries(DEPENDENTS.map((key) => [key, ['root']])),
};

/** `root` is processing, and very many dependents of it are wanted. */
function wide(sliceTransitions = 4): SchedulerEnv {
  const env = new SchedulerEnv({
    kernel: { sliceTransitions },
    queuing: { workerSaturation: Infinity },
  });
  env.addWorkers(2);
  env.client('c');
  env.client('other');
  env.submit(WIDE, { keys: DEPENDENTS });
  continueSettling(env);
  return env.ignoreMessages();
}

/** Every dependent has failed. */
function failed(sliceTransitions = 4): SchedulerEnv {
  const env = wide(sliceTransitions);
  env.fail('root');
  continueSettling(env);
  return env.ignoreMessages();
}

/** Returns how many slices it took. */
function continueSettling(env: SchedulerEnv, slicesMax = Infinity): number {
  let slices = 0;
  for (; env.kernel.isUnsettled && slices < slicesMax; slices++) env.send({ op: 'continue' });
  return slices;
}

function inState(env: SchedulerEnv, state: string): string[] {
  return DEPENDENTS.filter((key) => env.state(key) === state);
}

/** Everything that can be computed is. */
function drain(env: SchedulerEnv): void {
  for (;;) {
    continueSettling(env);
    const next = [...env.cluster.tasks.values()].find(({ state }) => state === 'processing');
    if (next === undefined) return;
    env.finish(next.key);
  }
}

describe('a failure', () => {
  it('reaches very many dependents in slices, in the order in which it does so at once', () => {
    const run = (sliceTransitions: number): { news: string[]; slices: number } => {
      const env = wide(sliceTransitions);
      env.fail('root');
      const slices = continueSettling(env);
      expect(inState(env, 'erred')).toEqual(DEPENDENTS);
      return { news: env.takeClient(), slices };
    };
    expect(run(4).news).toEqual(run(Infinity).news);
    expect(run(4).slices).toBeGreaterThanOrEqual(COUNT / 2 - 1);
    expect(run(Infinity).slices).toBe(0);
  });

  it('reaches the end of a long chain in slices', () => {
    const env = new SchedulerEnv({ kernel: { sliceTransitions: 4 } });
    env.addWorkers(1);
    env.submit({ a: [], b: ['a'], c: ['b'], d: ['c'], e: ['d'], f: ['e'] });
    continueSettling(env);
    env.fail('a');
    expect(env.state('f')).toBe('waiting');
    expect(continueSettling(env)).toBeGreaterThan(1);
    expect(env.states).toMatchObject({ b: 'erred', f: 'erred' });
    expect(env.task('f').exceptionBlame?.key).toBe('a');
  });

  it('is not known to a client that wishes for a dependent before its turn, and is when it comes', () => {
    const env = wide();
    env.fail('root');
    expect(env.state('d-0')).toBe('waiting');
    env.send({ op: 'client-desires-keys', client: 'other', keys: ['d-0'] });
    env.send({ op: 'report-key', client: 'other', key: 'd-0' });
    expect(env.takeClient('other')).toEqual([]);
    continueSettling(env);
    expect(env.takeClient('other')).toEqual([expect.stringContaining('task-erred d-0')]);
  });

  it('does not reach a dependent that is cancelled before its turn', () => {
    const env = wide();
    env.fail('root');
    env.ignoreMessages().cancel(['d-0']);
    continueSettling(env);
    expect(env.states).not.toHaveProperty('d-0');
    expect(env.takeClient()).not.toContainEqual(expect.stringContaining('task-erred d-0'));
    expect(inState(env, 'erred')).toHaveLength(COUNT - 1);
  });

  it('reaches all before a retry begins', () => {
    const env = wide();
    env.fail('root');
    env.ignoreMessages().retry('d-0');
    continueSettling(env);
    expect(inState(env, 'waiting')).toEqual(DEPENDENTS);
    const ofLast = env.takeClient().filter((line) => line.includes('d-0'));
    expect(ofLast).toEqual([expect.stringContaining('task-erred d-0'), 'task-retried d-0']);
    drain(env);
    expect(inState(env, 'memory')).toEqual(DEPENDENTS);
  });

  it('ends when there is data under the key: dependents before their turn have not failed', () => {
    const env = wide();
    env.fail('root');
    const waiting = inState(env, 'waiting');
    expect(waiting.length).toBeGreaterThan(COUNT / 2);
    env.ignoreMessages().scatter({ root: ['w1'] }, 'other');
    continueSettling(env);
    const news = env.takeClient();
    expect(news).toHaveLength(COUNT - waiting.length);
    for (const line of news) expect(line).toMatch(/^task-retried/);
    drain(env);
    expect(inState(env, 'memory')).toEqual(DEPENDENTS);
  });

  it('reaches a task that is submitted below a dependent before its turn', () => {
    const env = wide();
    env.fail('root');
    env.submit({ n: ['d-0', 'd-1'] });
    expect(env.state('n')).toBe('waiting');
    continueSettling(env);
    expect(env.state('n')).toBe('erred');
    expect(env.task('n').exceptionBlame?.key).toBe('root');
  });

  it('leaves nothing behind when the client leaves before it has reached all', () => {
    const env = wide();
    env.fail('root');
    env.send({ op: 'remove-client', client: 'c' });
    continueSettling(env);
    expect(env.states).toEqual({});
  });

  it('does not outlive a restart', () => {
    const env = wide();
    env.fail('root');
    env.send({ op: 'restart' });
    expect(env.states).toEqual({});
    expect(env.kernel.isUnsettled).toBe(false);
  });
});

describe('a retry', () => {
  it('reaches very many dependents in slices, in the order in which it does so at once', () => {
    const run = (sliceTransitions: number): { news: string[]; slices: number } => {
      const env = failed(sliceTransitions);
      env.retry('root');
      const slices = continueSettling(env);
      expect(inState(env, 'waiting')).toEqual(DEPENDENTS);
      expect(env.task('root').failure).toBeUndefined();
      return { news: env.takeClient(), slices };
    };
    expect(run(4).news).toEqual(run(Infinity).news);
    expect(run(4).slices).toBeGreaterThanOrEqual(COUNT / 2 - 1);
    expect(run(Infinity).slices).toBe(0);
  });

  it('of very many keys is done in slices, to the same end as at once', () => {
    const run = (sliceTransitions: number): { news: string[]; slices: number } => {
      const env = new SchedulerEnv({ kernel: { sliceTransitions } });
      env.addWorkers(2, { threads: COUNT });
      env.submit(Object.fromEntries(DEPENDENTS.map((key) => [key, []])));
      continueSettling(env);
      for (const key of DEPENDENTS) env.fail(key);
      env.ignoreMessages().retry(...DEPENDENTS);
      const slices = continueSettling(env);
      expect(inState(env, 'processing')).toEqual(DEPENDENTS);
      return { news: env.takeClient(), slices };
    };
    expect(run(4).news).toEqual(run(Infinity).news);
    expect(run(4).slices).toBeGreaterThan(COUNT / 4);
  });

  it('lets a client know that what it has not reached failed, and then that it was retried', () => {
    const env = failed();
    env.retry('root');
    expect(env.state('d-0')).toBe('erred');
    env.send({ op: 'client-desires-keys', client: 'other', keys: ['d-0'] });
    continueSettling(env);
    expect(env.takeClient('other')).toEqual([
      expect.stringContaining('task-erred d-0'),
      'task-retried d-0',
    ]);
  });

  it('reaches what is submitted below a dependent before its turn, and fails with it', () => {
    const env = failed();
    env.retry('root');
    env.submit({ n: ['d-0'] });
    expect(env.state('n')).toBe('erred');
    continueSettling(env);
    expect(env.state('n')).toBe('waiting');
  });

  it('starts dependents whose turn comes when the retried task is done', () => {
    const env = failed();
    env.retry('root');
    env.finish('root');
    expect(inState(env, 'erred').length).toBeGreaterThan(0);
    drain(env);
    expect(inState(env, 'memory')).toEqual(DEPENDENTS);
  });

  it('that fails again leaves all failed, by the new failure', () => {
    const env = failed();
    env.retry('root');
    env.ignoreMessages().fail('root');
    continueSettling(env);
    expect(inState(env, 'erred')).toEqual(DEPENDENTS);
    expect(env.task('root').failure).toBeDefined();
    for (const key of DEPENDENTS) expect(env.task(key).exceptionBlame?.key).toBe('root');
    env.retry('root');
    drain(env);
    expect(inState(env, 'memory')).toEqual(DEPENDENTS);
  });

  it('does not start again what has failed since, by itself', () => {
    const env = failed();
    env.retry('root');
    env.finish('root');
    // It starts before its turn: data under its key is lost.
    env.scatter({ 'd-0': ['w1'] });
    env.releaseWorkerData('w1', 'd-0');
    continueSettling(env, 1);
    env.fail('d-0');
    drain(env);
    expect(env.state('d-0')).toBe('erred');
    expect(env.task('d-0').exceptionBlame?.key).toBe('d-0');
    expect(inState(env, 'memory')).toHaveLength(COUNT - 1);
  });

  it('survives the worker that runs the retried task, and the one that holds its result', () => {
    const env = failed();
    env.retry('root');
    env.removeWorker(env.task('root').processingOn!.name);
    continueSettling(env, 1);
    env.finish('root');
    const holder = env.task('root').whoHas.items[0]!.name;
    env.addWorker('w3');
    env.removeWorker(holder);
    drain(env);
    expect(inState(env, 'memory')).toEqual(DEPENDENTS);
  });

  it('does not reach a dependent that is cancelled before its turn', () => {
    const env = failed();
    env.retry('root');
    env.cancel(['d-0']);
    continueSettling(env);
    expect(env.states).not.toHaveProperty('d-0');
    expect(inState(env, 'waiting')).toHaveLength(COUNT - 1);
  });

  it('leaves a dependent failed that another failure holds back', () => {
    const env = new SchedulerEnv({ kernel: { sliceTransitions: 2 } });
    env.addWorkers(1, { threads: 2 });
    env.submit({ a: [], b: [], c: ['a', 'b'], d: ['a'], e: ['c', 'd'] }, { keys: ['d', 'e'] });
    continueSettling(env);
    env.fail('a');
    env.fail('b');
    continueSettling(env);
    env.retry('a');
    continueSettling(env);
    expect(env.states).toMatchObject({ a: 'processing w1', b: 'erred', c: 'erred', e: 'erred' });
    expect(env.task('e').exceptionBlame?.key).toBe('b');
  });

  it('does not outlive a restart', () => {
    const env = failed();
    env.retry('root');
    env.send({ op: 'restart' });
    expect(env.states).toEqual({});
    expect(env.kernel.isUnsettled).toBe(false);
  });
});

describe('a result', () => {
  /** As messages to the workers, in their order. */
  const started = (env: SchedulerEnv): string[] => [
    ...env.takeWorker('w1'),
    ...env.takeWorker('w2'),
  ];

  it('starts very many dependents in slices, the best first, as it does at once', () => {
    const run = (sliceTransitions: number): { sent: string[]; slices: number } => {
      const env = wide(sliceTransitions);
      env.setPriority(Object.fromEntries(DEPENDENTS.map((key, index) => [key, (index * 5) % 7])));
      env.ignoreMessages().finish('root');
      const slices = continueSettling(env);
      expect(inState(env, 'processing')).toEqual(DEPENDENTS);
      return { sent: started(env), slices };
    };
    expect(run(4).sent).toEqual(run(Infinity).sent);
    expect(run(4).slices).toBeGreaterThan(1);
    expect(run(Infinity).slices).toBe(0);
  });

  it('that is lost before all dependents have started is computed again, and they start', () => {
    const env = wide();
    env.finish('root');
    continueSettling(env, 1);
    expect(inState(env, 'waiting').length).toBeGreaterThan(0);
    const holder = env.task('root').whoHas.items[0]!.name;
    env.releaseWorkerData(holder, 'root');
    continueSettling(env);
    expect(env.state('root')).toMatch(/processing/);
    drain(env);
    expect(inState(env, 'memory')).toEqual(DEPENDENTS);
  });

  it('does not start a dependent that is cancelled before its turn, or that misses something else', () => {
    const env = wide();
    env.submit({ ...WIDE, other: [], both: ['root', 'other'] }, { keys: ['both'] });
    continueSettling(env);
    env.finish('root');
    env.cancel(['d-0']);
    continueSettling(env);
    expect(env.states).not.toHaveProperty('d-0');
    expect(env.state('both')).toBe('waiting');
    env.finish('other');
    continueSettling(env);
    expect(env.state('both')).toBe('processing');
  });

  it('that comes when another input has failed starts nothing', () => {
    const env = new SchedulerEnv({ kernel: { sliceTransitions: 1 } });
    env.addWorkers(1, { threads: 2 });
    env.submit({ a: [], b: [], c: ['a', 'b'], d: ['a', 'b'], e: ['a'] });
    continueSettling(env);
    env.finish('a');
    env.fail('b');
    continueSettling(env);
    expect(env.states).toMatchObject({ c: 'erred', d: 'erred', e: 'processing w1' });
  });

  it('does not outlive a restart', () => {
    const env = wide();
    env.finish('root');
    env.send({ op: 'restart' });
    expect(env.states).toEqual({});
    expect(env.kernel.isUnsettled).toBe(false);
  });
});

it('a list of dependents from which most are forgotten becomes shorter, and keeps the others in order', () => {
  const env = new SchedulerEnv({ kernel: { validate: false } });
  env.addWorkers(1);
  const keys = Array.from({ length: 12_000 }, (_, index) => `x-${index}`);
  env.submit({ r: [], ...Object.fromEntries(keys.map((key) => [key, ['r']])) }, { keys });
  env.release(...keys.filter((_, index) => index % 4 !== 0));
  const { dependents, dependentsWithForgotten } = env.task('r');
  expect(dependents.map(({ key }) => key)).toEqual(keys.filter((_, index) => index % 4 === 0));
  expect(dependentsWithForgotten.length).toBeLessThan(9000);
  env.submit({ 'x-0b': ['r'] });
  env.release(...keys);
  expect(env.task('r').dependents.map(({ key }) => key)).toEqual(['x-0b']);
});

// ---- whatever happens in between -------------------------------------------------------------

const KEYS = Array.from({ length: 10 }, (_, index) => `t-${index}`);

interface Act {
  readonly what: 'fail' | 'finish' | 'retry' | 'desire' | 'release' | 'cancel' | 'lose' | 'submit';
  readonly key: number;
  /** Slices of work that is left before it happens. */
  readonly slices: number;
}

const acts: fc.Arbitrary<readonly Act[]> = fc.array(
  fc.record({
    what: fc.constantFrom(
      ...(['fail', 'fail', 'fail', 'finish', 'finish', 'retry', 'retry', 'retry'] as const),
      ...(['desire', 'release', 'cancel', 'lose', 'submit'] as const),
    ),
    key: fc.nat(KEYS.length - 1),
    slices: fc.nat(3),
  }),
  { maxLength: 25, size: 'max' },
);

/** Each task depends on those before it for which a bit is set. */
const graphs: fc.Arbitrary<TerseGraph> = fc
  .array(fc.nat(2 ** 10 - 1), { minLength: KEYS.length, maxLength: KEYS.length })
  .map((masks) =>
    Object.fromEntries(
      KEYS.map((key, number) => {
        const isInput = (_: string, other: number): boolean => {
          return other < number && ((masks[number] ?? 0) & (1 << other)) !== 0;
        };
        return [key, KEYS.filter(isInput)];
      }),
    ),
  );

function environment(sliceTransitions: number, graph: TerseGraph): SchedulerEnv {
  const env = new SchedulerEnv({
    kernel: { sliceTransitions, allowedFailures: 1000 },
    queuing: { workerSaturation: Infinity },
  });
  env.addWorkers(2, { threads: 8 });
  env.client('c');
  env.client('other');
  env.submit(graph, { keys: KEYS });
  continueSettling(env);
  return env;
}

function act(env: SchedulerEnv, graph: TerseGraph, { what, key: number, slices }: Act): void {
  const key = KEYS[number] as string;
  const client = number % 2 === 0 ? 'c' : 'other';
  switch (what) {
    case 'fail':
      return void env.fail(key);
    case 'finish':
      return void env.finish(key);
    case 'retry':
      return env.retry(key);
    case 'desire':
      return env.send({ op: 'client-desires-keys', client, keys: [key] }) as never;
    case 'release':
      env.send({ op: 'client-releases-keys', client, keys: [key] });
      return;
    case 'cancel':
      return env.cancel([key], { client, force: slices === 0 });
    case 'lose': {
      const name = number % 2 === 0 ? 'w1' : 'w2';
      env.removeWorker(name);
      env.addWorker(name, { threads: 8 });
      return;
    }
    case 'submit': {
      const above = Object.fromEntries(
        KEYS.slice(0, number + 1).map((each) => [each, graph[each]]),
      );
      env.send({ op: 'update-graph', client, tasks: graphTasks(above as TerseGraph), keys: [key] });
    }
  }
}

const SAID: ReadonlySet<Act['what']> = new Set(['retry', 'desire', 'release', 'cancel', 'submit']);

/** Retries come from the same client. */
function speakerOf({ what, key }: Act): string {
  return what === 'retry' || key % 2 === 0 ? 'c' : 'other';
}

/** What the clients have in the end: the state of each key and who wants it. */
function ends(env: SchedulerEnv): Map<string, readonly string[]> {
  drain(env);
  const entries = [...env.cluster.tasks.values()]
    .filter(({ whoWants }) => whoWants.size > 0)
    .map((task) => {
      const cause = task.state === 'erred' ? task.exceptionBlame : undefined;
      if (cause !== undefined) expect(cause.state).toBe('erred');
      const clients = task.whoWants.items.map(({ key }) => key);
      return [task.key, [task.state, ...clients.sort()]] as const;
    });
  return new Map(entries);
}

it('whatever happens between the slices of failures and retries, clients have the same in the end', () => {
  const isIn = (env: SchedulerEnv, key: number): boolean => {
    return env.state(KEYS[key] as string) === 'processing';
  };
  const isWanted = (env: SchedulerEnv, key: number): boolean => {
    const task = env.cluster.tasks.get(KEYS[key] as string);
    return task !== undefined && task.whoWants.size > 0;
  };
  fc.assert(
    fc.property(graphs, acts, fc.constantFrom(1, 2, 5), (graph, steps, sliceTransitions) => {
      const [sliced, whole] = [environment(sliceTransitions, graph), environment(Infinity, graph)];
      for (const step of steps) {
        const { what, key } = step;
        const isGivenUp = what === 'release' || what === 'cancel';
        continueSettling(sliced, step.slices);
        // The host takes what a client says only when all that it has said before is done.
        if (SAID.has(what)) {
          while (sliced.kernel.isBusyFor(speakerOf(step))) continueSettling(sliced, 1);
        }
        const isReport = what === 'fail' || what === 'finish';
        // A report comes from where the task is being computed.
        if (isReport && !(isIn(sliced, key) && isIn(whole, key))) continue;
        // What nothing needs is released or failed, as it comes.
        if (what === 'retry' && !(isWanted(sliced, key) && isWanted(whole, key))) continue;
        act(sliced, graph, step);
        act(whole, graph, step);
        // What is given up may be kept by who wants it before its turn: that is not compared, and no graph that
        // is being taken in.
        if (isGivenUp || what === 'submit') continueSettling(sliced);
      }
      const [one, other] = [ends(sliced), ends(whole)];
      for (const key of [...one.keys(), ...other.keys()]) {
        // Wanting a key computes nothing: what failures had released by then, or not yet.
        const isComputed = [one, other].every((end) => end.get(key)?.[0] !== 'released');
        if (isComputed) expect([key, one.get(key)]).toEqual([key, other.get(key)]);
      }
    }),
    effort(100),
  );
});
