import { describe, expect, it } from 'vitest';
import { numbered } from '../../kit/graph.ts';
import { SchedulerKernel } from '../../../core/kernel/kernel.ts';
import { Balancer } from '../../../plugins/work-stealing/round.ts';
import { dask } from '../../../policies/stealing/dask.ts';
import type { StealProposal } from '../../../core/api/index.ts';
import { makePorts } from '../../kit/ports.ts';
import { inCharge, StealEnv } from './kit.ts';

const DASK = inCharge(dask.create({}));

/** Many tasks on few workers, and as many workers that have just joined. No validation: it is large. */
class LargeCluster {
  readonly kernel = new SchedulerKernel(
    {},
    makePorts({ queuing: { workerSaturation: Infinity } }),
    0,
  );
  readonly slices: StealProposal[][] = [];
  policy = DASK;
  readonly balancer = new Balancer({
    cluster: () => this.kernel.cluster,
    policy: () => this.policy,
    spared: new Set(),
    enact: (proposals) => {
      this.slices.push([...proposals]);
      this.kernel.handle({ op: 'steal-tasks', proposals, stimulusId: this.name() }, 0);
    },
  });
  private count = 0;

  constructor(tasks: number, workers: number) {
    this.kernel.handle({ op: 'register-client', client: 'c', stimulusId: this.name() }, 0);
    for (let index = 0; index < workers; index++) this.join(`busy-${index}`);
    const keys = Array.from({ length: tasks }, (_, index) => `x-${index}`);
    const graph = keys.map((key) => ({ key, dependencies: [], runSpec: key }));
    this.kernel.handle(
      { op: 'update-graph', client: 'c', tasks: graph, keys, stimulusId: this.name() },
      0,
    );
    for (let index = 0; index < workers; index++) this.join(`free-${index}`);
  }

  get keys(): string[] {
    return this.slices.flat().map(({ key }) => key);
  }

  leave(name: string): void {
    const worker = `tcp://${name}:1`;
    this.kernel.handle(
      { op: 'remove-worker', worker, expected: true, close: false, stimulusId: this.name() },
      0,
    );
  }

  pause(name: string): void {
    this.kernel.handle(
      {
        op: 'worker-status-change',
        worker: `tcp://${name}:1`,
        status: 'paused',
        stimulusId: this.name(),
      },
      0,
    );
  }

  cancel(keys: readonly string[]): void {
    const stimulusId = this.name();
    this.kernel.handle({ op: 'cancel-keys', client: 'c', keys, force: true, stimulusId }, 0);
  }

  private join(name: string): void {
    const address = `tcp://${name}:1`;
    this.kernel.handle(
      {
        op: 'register-worker',
        identity: {
          address,
          serverId: name,
          name,
          host: name,
          threadCount: 1,
          memoryLimitBytes: 0,
          resources: {},
        },
        status: 'running',
        stimulusId: this.name(),
      },
      0,
    );
  }

  private name(): string {
    return `s${++this.count}`;
  }
}

describe('a round in slices', () => {
  it('no slice asks for more than 500 tasks, and together they ask for what one would', () => {
    const cluster = new LargeCluster(20_000, 10);
    cluster.balancer.begin();
    let slices = 1;
    while (cluster.balancer.advance()) slices++;
    expect(slices).toBeGreaterThan(10);
    expect(Math.max(...cluster.slices.map((proposals) => proposals.length))).toBeLessThanOrEqual(
      500,
    );
    expect(cluster.keys).toHaveLength(cluster.kernel.cluster.stealsInFlight);
    expect(new Set(cluster.keys).size).toBe(cluster.keys.length);
    const whole = new LargeCluster(20_000, 10);
    whole.balancer.runOnce();
    expect(whole.keys).toEqual(cluster.keys);
  });

  it('a second round does not begin before the first one has ended', () => {
    const { balancer } = new LargeCluster(20_000, 10);
    expect(balancer.begin()).toBe(true);
    expect(balancer.advance()).toBe(true);
    expect(balancer.begin()).toBe(false);
    while (balancer.advance());
    expect(balancer.begin()).toBe(true);
    expect(balancer.metrics.rounds).toBe(2);
  });

  it('the policy that is in charge when a round begins decides all of it', () => {
    const cluster = new LargeCluster(20_000, 10);
    const whole = new LargeCluster(20_000, 10);
    whole.balancer.runOnce();
    cluster.balancer.begin();
    cluster.balancer.advance();
    cluster.policy = inCharge({ mayTake: () => false });
    while (cluster.balancer.advance());
    expect(cluster.keys).toEqual(whole.keys);
    cluster.slices.length = 0;
    cluster.balancer.runOnce();
    expect(cluster.keys).toEqual([]);
  });

  it('a round that is given up asks for nothing more', () => {
    const cluster = new LargeCluster(20_000, 10);
    cluster.balancer.begin();
    while (cluster.keys.length === 0) cluster.balancer.advance();
    const asked = cluster.keys.length;
    cluster.balancer.stop();
    expect(cluster.balancer.advance()).toBe(false);
    expect(cluster.keys).toHaveLength(asked);
  });

  it('tasks that go and workers that leave between two slices are noticed', () => {
    const cluster = new LargeCluster(20_000, 10);
    cluster.balancer.begin();
    while (cluster.keys.length < 1000) cluster.balancer.advance();
    const { keys: early } = cluster;
    const gone = [...cluster.kernel.cluster.tasks.keys()].filter((_, index) => index % 3 === 0);
    cluster.cancel(gone);
    cluster.leave('free-3');
    cluster.pause('free-4');
    cluster.leave('busy-9');
    cluster.slices.length = 0;
    while (cluster.balancer.advance());
    const late = cluster.slices.flat();
    expect(late.length).toBeGreaterThan(0);
    const missing = new Set([...gone, ...early]);
    expect(late.filter(({ key }) => missing.has(key))).toEqual([]);
    const away = ['tcp://free-3:1', 'tcp://free-4:1', 'tcp://busy-9:1'];
    expect(late.filter(({ thief }) => away.includes(thief))).toEqual([]);
    // One that has left is not robbed either.
    expect(late.filter(({ victim }) => victim === 'tcp://busy-9:1')).toEqual([]);
  });
});

describe('rounds for nothing', () => {
  /** Many tasks that must stay where they are, and a worker without work. */
  function stubborn(): StealEnv {
    const env = new StealEnv();
    env.addWorkers(2);
    env.load('w1', numbered('x', 1100, { allowOtherWorkers: false }));
    return env;
  }

  it('are repeated ever less often, but at least once in eleven times', () => {
    const { balancer } = stubborn();
    const begun: number[] = [];
    for (let time = 0; time < 60; time++) {
      if (!balancer.begin()) continue;
      begun.push(time);
      while (balancer.advance());
    }
    expect(begun).toEqual([0, 2, 5, 10, 19, 30, 41, 52]);
  });

  it('begin at once when something has happened', () => {
    const { balancer } = stubborn();
    for (let time = 0; time < 5; time++) if (balancer.begin()) while (balancer.advance());
    expect(balancer.begin()).toBe(true);
    while (balancer.advance());
    expect(balancer.begin()).toBe(false);
    balancer.awake();
    expect(balancer.begin()).toBe(true);
  });

  it('are no reason to rest when they cost nothing', () => {
    const env = new StealEnv();
    env.addWorkers(2);
    env.load('w1', numbered('x', 9, { allowOtherWorkers: false }));
    for (let time = 0; time < 5; time++) {
      expect(env.balancer.begin()).toBe(true);
      while (env.balancer.advance());
    }
  });
});
