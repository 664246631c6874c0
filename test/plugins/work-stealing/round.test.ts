import { describe, expect, it, vi } from 'vitest';
import { numbered } from '../../kit/graph.ts';
import { StealEnv } from './kit.ts';

const MB = 1e6;
const W1 = 'tcp://w1:1';
const W2 = 'tcp://w2:1';

describe('how much is stolen in one round', () => {
  // Recorded from Dask: tasks of unknown duration on w1, w2 has just joined.
  it.each([
    [1, 4, 1],
    [1, 6, 2],
    [1, 10, 3],
    [1, 20, 5],
    [2, 4, 2],
    [2, 6, 2],
    [2, 10, 3],
    [2, 20, 5],
  ])('with %d threads and %d tasks: %d', (threads, tasks, asked) => {
    const env = new StealEnv();
    env.place({ w1: numbered('x', tasks), w2: {} }, { threads });
    expect(env.balance()).toHaveLength(asked);
    expect(env.cluster.stealsInFlight).toBe(asked);
  });

  it('nothing when no worker is idle, and nothing when all are', () => {
    const busy = new StealEnv();
    busy.place({ w1: numbered('x', 3), w2: numbered('y', 3) });
    expect(busy.balance()).toEqual([]);
    const idle = new StealEnv();
    idle.addWorkers(3);
    expect(idle.balance()).toEqual([]);
  });

  it('rounds and answers lead to an even cluster, and then to rest', () => {
    const env = new StealEnv();
    env.place({ w1: numbered('x', 40), w2: {}, w3: {}, w4: {} });
    env.settle();
    const counts = Object.values(env.counts);
    expect(counts.reduce((sum, count) => sum + count)).toBe(40);
    expect(Math.min(...counts)).toBeGreaterThanOrEqual(5);
    expect(env.balance()).toEqual([]);
  });

  it('what is in flight counts: a task is not asked for twice, and a second round asks for less', () => {
    const env = new StealEnv();
    env.place({ w1: numbered('x', 20), w2: {} });
    const first = env.balance();
    const second = env.balance();
    expect(second).toHaveLength(1);
    expect(first).not.toContain(second[0]);
    expect(env.worker('w2').inFlightTasks).toBe(6);
    expect(env.worker('w1').inFlightS).toBe(-3);
  });
});

describe('which tasks are stolen', () => {
  it('those that would run last', () => {
    const env = new StealEnv();
    const urgent = { 'urgent-0': { userPriority: 9, workers: [W1], allowOtherWorkers: true } };
    env.place({ w1: { ...numbered('x', 6), ...urgent }, w2: {} });
    expect(env.balance().map((proposal) => proposal.split(' ')[0])).toEqual(['x-5', 'x-4']);
  });

  it('the cheap ones before those with much to fetch', () => {
    const env = new StealEnv();
    env.addWorkers(2);
    env.scatter({ data: ['w1'] }, 'c', 10 * MB);
    env.load('w1', numbered('free', 3));
    env.load('w1', numbered('fed', 3, ['data']));
    expect(env.balance()[0]).toBe('free-2 w1 -> w2');
  });

  it('none that is about as short as a message, or that costs more to fetch than to wait for', () => {
    const env = new StealEnv({ spared: ['split'], durationsS: { fast: 0.001 } });
    env.place({ w1: { ...numbered('split', 9), ...numbered('fast', 900) }, w2: {} });
    expect(env.balance()).toEqual([]);
    const heavy = new StealEnv();
    heavy.addWorkers(2);
    heavy.scatter({ data: ['w1'] }, 'c', 1000 * MB);
    heavy.load('w1', numbered('x', 8, ['data']));
    expect(heavy.balance()).toEqual([]);
  });

  it('none that runs on without a thread, and none that was refused', () => {
    const env = new StealEnv();
    env.place({ w1: numbered('x', 6), w2: {} });
    env.secede('x-5');
    const [proposal = ''] = env.balance();
    expect(proposal).toBe('x-4 w1 -> w2');
    env.answerSteal('x-4', 'executing');
    expect(env.balance().join()).not.toMatch(/x-[45] /);
  });

  it('a task that may not run elsewhere stays; a preference does not hold it', () => {
    const env = new StealEnv();
    const bound = { workers: [W1], allowOtherWorkers: false };
    env.place({ w1: { ...numbered('x', 3), ...numbered('bound', 6, bound) }, w2: {} });
    env.settle();
    const left = [...env.worker('w1').processing].map(({ key }) => key);
    expect(left.filter((key) => key.startsWith('bound'))).toHaveLength(6);
    expect(env.counts['w2']).toBeGreaterThan(0);
  });
});

describe('who steals', () => {
  it('no paused worker', () => {
    const env = new StealEnv();
    env.place({ w1: numbered('x', 10), w2: {}, w3: {} });
    env.setStatus('w2', 'paused');
    env.settle();
    expect(env.counts['w2']).toBe(0);
    expect(env.counts['w3']).toBeGreaterThan(0);
  });

  it('the least busy; of equals the one with the fewest stored bytes, then the oldest', () => {
    const env = new StealEnv();
    env.place({ w1: numbered('x', 30), w2: {}, w3: {}, w4: {} });
    env.scatter({ data: ['w2'] });
    expect(env.balance().slice(0, 3)).toEqual(['x-29 w1 -> w3', 'x-28 w1 -> w4', 'x-27 w1 -> w2']);
  });

  it('who holds the input, though it has more to do than another', () => {
    const env = new StealEnv();
    env.addWorkers(3);
    env.scatter({ data: ['w1', 'w3'] }, 'c', 100 * MB);
    env.load('w1', numbered('x', 12, ['data']));
    env.load('w3', { 'small-0': {} });
    expect(env.balance()[0]).toBe('x-11 w1 -> w3');
  });

  it('one of the holders also when there are very many of them', () => {
    const env = new StealEnv();
    env.addWorkers(60);
    const holders = Array.from({ length: 40 }, (_, index) => `w${index + 20}`);
    env.scatter({ data: ['w1', ...holders] }, 'c', 100 * MB);
    env.load('w1', numbered('x', 50, ['data']));
    const thieves = env.balance().map((proposal) => proposal.split(' ').at(-1)!);
    // Each of the holders once, before any worker that would have to fetch it.
    expect(thieves.slice(0, 40).sort()).toEqual(holders.sort());
  });

  it('only who offers the resources, and they are found among many who do not', () => {
    const env = new StealEnv();
    env.addWorker('w1', { resources: { gpu: 8 } });
    for (let index = 2; index < 80; index++) env.addWorker(`w${index}`);
    env.addWorker('rich', { resources: { gpu: 1 } });
    env.load('w1', numbered('x', 12, { resources: { gpu: 1 } }));
    expect(env.balance()[0]).toBe('x-11 w1 -> rich');
  });

  it('one of the workers or hosts that a task names, found among many others', () => {
    const env = new StealEnv();
    env.addWorker('w1');
    const named = { workers: [W1, 'tcp://w70:1'], allowOtherWorkers: false };
    env.load('w1', numbered('x', 6, named));
    env.load('w1', numbered('y', 6, { ...named, workers: [W1], hosts: ['elsewhere'] }));
    for (let index = 2; index < 80; index++) env.addWorker(`w${index}`);
    env.addWorker('other', { host: 'elsewhere' });
    const proposals = env.balance();
    expect(proposals).toContain('x-5 w1 -> w70');
    expect(proposals).toContain('y-5 w1 -> other');
    expect(proposals.every((proposal) => / (w70|other)$/.test(proposal))).toBe(true);
  });

  it('a host by the name of one of its workers, without going through the workers for each thief', () => {
    const env = new StealEnv();
    env.addWorker('w1');
    const named = { workers: [W1], hosts: ['other'], allowOtherWorkers: false };
    env.load('w1', numbered('x', 6, named));
    for (let index = 2; index < 80; index++) env.addWorker(`w${index}`);
    env.addWorker('other', { host: 'elsewhere' });
    const walks = vi.spyOn(env.cluster.workers, 'values');
    expect(env.balance()[0]).toBe('x-5 w1 -> other');
    expect(walks.mock.calls.length).toBeLessThan(10);
  });

  it('only whom the rules let have the task, and they are found among many others', () => {
    const env = new StealEnv({
      rules: [
        { name: 'gpu', policy: { filter: (_task, { name }) => !name.startsWith('cpu') } },
        { name: 'near', policy: { mayMove: (_task, victim, thief) => victim.host === thief.host } },
      ],
    });
    env.addWorker('w1', { host: 'here' });
    env.load('w1', numbered('x', 12));
    for (let index = 2; index < 20; index++) env.addWorker(`cpu-${index}`, { host: 'here' });
    env.addWorker('far');
    expect(env.balance()).toEqual([]);
    env.addWorker('good', { host: 'here' });
    const proposals = env.balance();
    expect(proposals[0]).toBe('x-11 w1 -> good');
    expect(proposals.every((proposal) => proposal.endsWith(' -> good'))).toBe(true);
  });

  it('a preferred worker rather than the least busy one', () => {
    const env = new StealEnv();
    env.addWorkers(2);
    env.load('w1', numbered('x', 12, { workers: [W1, 'tcp://w3:1'] }));
    env.addWorker('w3');
    env.load('w3', { 'small-0': {} });
    expect(env.balance()[0]).toBe('x-11 w1 -> w3');
  });

  it('an actor goes where there is none', () => {
    const env = new StealEnv();
    env.place({ w1: {}, w2: {}, w3: {} });
    env.load('w2', { 'actor-0': { actor: true } });
    env.load('w1', numbered('x', 8, { actor: true }));
    expect(env.balance()[0]).toMatch(/ w1 -> w3$/);
  });
});

describe('who is robbed', () => {
  it('the busiest first, when no worker is saturated', () => {
    const env = new StealEnv();
    env.place({ w1: numbered('x', 4), w2: numbered('y', 6), w3: {} });
    env.judgeAnew();
    expect(env.cluster.saturated.size).toBe(0);
    expect(env.balance()[0]).toBe('y-5 w2 -> w3');
  });

  it('a worker that was paused is rid of all that has not begun', () => {
    const env = new StealEnv();
    env.place({ w1: numbered('x', 2), w2: numbered('y', 1), w3: {} }, { threads: 4 });
    env.setStatus('w1', 'paused');
    env.settle();
    expect(env.counts['w1']).toBe(0);
  });

  it('no worker with tasks whose theft would not pay', () => {
    const env = new StealEnv();
    env.place({ w1: numbered('x', 1), w2: {} });
    expect(env.balance()).toEqual([]);
  });
});

describe('the records of a round', () => {
  it('numbers, by cost level', () => {
    const env = new StealEnv();
    env.place({ w1: numbered('x', 20), w2: {} });
    env.balance();
    const { rounds, slices, asked, askedS, inFlight } = env.balancer.metrics;
    expect({ rounds, slices, inFlight }).toEqual({ rounds: 1, slices: 1, inFlight: 5 });
    expect([asked[0], askedS[0], asked.length]).toEqual([5, 2.5, 15]);
  });

  it('the same cluster gives the same proposals', () => {
    const play = (): string[][] => {
      const env = new StealEnv();
      env.place({ w1: numbered('x', 33), w2: {}, w3: numbered('y', 5), w4: {} }, { threads: 2 });
      const rounds: string[][] = [];
      for (let round = 0; round < 5; round++) {
        rounds.push(env.balance());
        env.giveUp();
      }
      return rounds;
    };
    expect(play()).toEqual(play());
  });
});

it('what was stolen and is stolen back is the same task with a new run id', () => {
  const env = new StealEnv();
  env.place({ w1: numbered('x', 6), w2: {} });
  env.settle();
  const moved = [...env.worker('w2').processing].map(({ key }) => key);
  const { runId } = env.task(moved[0]!);
  env.finishAll(...[...env.worker('w1').processing].map(({ key }) => key));
  env.load('w2', numbered('y', 20, { workers: [W2], allowOtherWorkers: false }));
  env.settle();
  expect(moved.some((key) => env.states[key] === 'processing w1')).toBe(true);
  expect(env.task(moved.find((key) => env.states[key] === 'processing w1')!).runId).toBeGreaterThan(
    runId,
  );
});
