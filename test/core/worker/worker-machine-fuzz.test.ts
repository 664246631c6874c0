import fc from 'fast-check';
import { expect, it } from 'vitest';

import { effort } from '../../kit/effort.ts';
import type { StealResponse } from '../../../core/messages/stimulus.ts';
import type { Instruction } from '../../../core/worker/events.ts';
import { WORKER_TRANSITIONS } from '../../../core/worker/transitions.ts';
import {
  computeTask,
  FAILURE,
  type Locations,
  SELF,
  type Unnamed,
  WorkerBench,
} from './builders.ts';

const KEYS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
const PEERS = ['tcp://h1:1', 'tcp://h2:1', 'tcp://10.0.0.1:9'];

/** One thing that may happen, made of small numbers so that a failure shrinks well. */
interface Step {
  readonly what: (typeof STEPS)[number];
  readonly key: number;
  readonly mask: number;
  readonly peer: number;
}

const STEPS = [
  'compute',
  'compute',
  'compute',
  'free',
  'free-many',
  'steal',
  'set-priority',
  'extend-time-limits',
  'set-priority',
  'acquire',
  'remove-replicas',
  'refresh',
  'remove-worker',
  'finish-run',
  'finish-run',
  'return',
  'secede',
  'rejoin',
  'finish-transfer',
  'finish-transfer',
  'find-missing',
  'retry-busy',
  'pause',
  'unpause',
  'crawl',
  'data-lost',
  'update-data',
] as const;

const step: fc.Arbitrary<Step> = fc.record({
  what: fc.constantFrom(...STEPS),
  key: fc.nat(KEYS.length - 1),
  mask: fc.nat(255),
  peer: fc.nat(PEERS.length - 1),
});

/** The world around a worker: it carries out instructions when the steps say so, and keeps accounts. */
class World {
  readonly bench = new WorkerBench({
    threadCount: 2,
    resources: { gpu: 1 },
    shortRunS: 1,
    incomingBytesMax: 500,
    transitionCounterMax: 10_000,
  });
  readonly store = new Set<string>();
  readonly runs = new Set<string>();
  /** The part of `runs` that may stand in line. */
  readonly short = new Set<string>();
  readonly transfers = new Map<string, readonly string[]>();
  readonly busy = new Set<string>();
  /** Latest assignment that has been neither reported nor freed. */
  readonly expected = new Map<string, number>();

  play(event: Unnamed | ReturnType<typeof computeTask>): void {
    for (const instruction of this.bench.instructions(event)) this.carryOut(instruction);
    const inMemory = [...this.bench.kernel.tables.tasks.values()].filter(
      (task) => task.state === 'memory',
    );
    expect(inMemory.map((task) => task.key).sort()).toEqual([...this.store].sort());
  }

  take({ what, key: index, mask, peer: peerIndex }: Step): void {
    const key = KEYS[index]!;
    const peer = PEERS[peerIndex]!;
    const some = KEYS.filter((_, bit) => (mask & (1 << bit)) !== 0);
    const holders = [
      ...PEERS.filter((_, bit) => (mask & (1 << bit)) !== 0),
      ...(mask & 8 ? [SELF] : []),
    ];
    switch (what) {
      case 'compute':
        return this.compute(index, mask);
      case 'free':
      case 'free-many': {
        const keys = what === 'free' ? [key] : mask & 1 ? some : some.toReversed();
        for (const freed of keys) this.expected.delete(freed);
        return this.play({ op: 'free-keys', keys });
      }
      case 'steal': {
        // Now and then an assignment is meant that is not in force any more.
        const runIds = some.map((stolen) => (this.expected.get(stolen) ?? 0) - (mask % 5 ? 0 : 1));
        return this.play({ op: 'steal-request', keys: some, runIds });
      }
      case 'set-priority': {
        const runIds = some.map((moved) => (this.expected.get(moved) ?? 0) - (mask % 5 ? 0 : 1));
        const priorities = some.map((_, bit) => [((mask + bit) % 5) - 2, 1, bit] as const);
        return this.play({ op: 'set-priority', keys: some, runIds, priorities });
      }
      case 'extend-time-limits': {
        const runIds = some.map((moved) => (this.expected.get(moved) ?? 0) - (mask % 5 ? 0 : 1));
        const timeLimitsMs = some.map((_, bit) => [mask, Infinity][bit % 2]!);
        return this.play({ op: 'extend-time-limits', keys: some, runIds, timeLimitsMs });
      }
      case 'acquire':
        return this.play({
          op: 'acquire-replicas',
          replicas: { keys: [key], nbytes: [mask], whoHas: [holders] },
        });
      case 'remove-replicas':
        return this.play({ op: 'remove-replicas', keys: some });
      case 'refresh':
        return this.play({
          op: 'refresh-who-has',
          replicas: { keys: some, nbytes: some.map(() => 100), whoHas: some.map(() => holders) },
        });
      case 'remove-worker':
        return this.play({ op: 'remove-worker', worker: peer });
      case 'finish-run':
        return this.finishRun([...this.runs][mask % Math.max(1, this.runs.size)], index);
      case 'return': {
        const run = [...this.short][mask % Math.max(1, this.short.size)];
        if (run === undefined) return;
        this.endRun(run);
        return this.play({ op: 'execute-returned', key: run });
      }
      case 'secede':
      case 'rejoin': {
        const run = [...this.runs][mask % Math.max(1, this.runs.size)];
        if (run === undefined) return;
        this.short.delete(run); // It has begun.
        if (what === 'rejoin') return this.play({ op: 'execute-rejoin', key: run });
        return this.play({ op: 'execute-secede', key: run, computeDurationS: mask });
      }
      case 'finish-transfer':
        return this.finishTransfer(
          [...this.transfers.keys()][peerIndex % Math.max(1, this.transfers.size)],
          mask,
        );
      case 'find-missing':
        return this.play({ op: 'find-missing' });
      case 'retry-busy':
        this.busy.delete(peer);
        return this.play({ op: 'retry-busy-worker', worker: peer });
      case 'pause':
      case 'unpause':
      case 'crawl':
        return this.play({ op: what });
      case 'data-lost':
        return this.play({ op: 'data-lost', keys: some });
      case 'update-data':
        return this.updateData(key, mask);
    }
  }

  /** Everything goes well from now on. Returns false when nothing is left to happen. */
  heal(): boolean {
    for (const peer of this.busy) {
      this.busy.delete(peer);
      this.play({ op: 'retry-busy-worker', worker: peer });
    }
    const [run] = this.runs;
    const [peer] = this.transfers.keys();
    if (run !== undefined) this.finishRun(run, 2);
    else if (peer !== undefined) this.finishTransfer(peer, 255);
    else {
      const { missing } = this.bench.kernel.tables;
      if (missing.size === 0) return false;
      const keys = [...missing].map((task) => task.key);
      const whoHas = keys.map(() => [PEERS[0]!]);
      this.play({ op: 'refresh-who-has', replicas: { keys, nbytes: keys.map(() => 10), whoHas } });
    }
    return true;
  }

  private compute(index: number, mask: number): void {
    const key = KEYS[index]!;
    const where: Record<string, Locations[string]> = {};
    for (const [bit, dependency] of KEYS.slice(0, index).entries()) {
      if ((mask & (1 << bit)) === 0) continue;
      where[dependency] = { at: [PEERS[bit % 3]!, PEERS[mask % 3]!], nbytes: mask };
    }
    const gpu = mask % 3 === 0 ? 1 : mask % 31 === 0 ? 5 : 0;
    const event = computeTask(key, where, {
      priority: [0, mask % 3, index],
      durationS: mask % 2 ? 0.1 : 10,
      ...(gpu > 0 ? { resources: { gpu } } : {}),
    });
    this.expected.set(key, event.runId);
    this.play(event);
  }

  private finishRun(key: string | undefined, outcome: number): void {
    if (key === undefined) return;
    this.endRun(key);
    if (outcome === 0) this.play({ op: 'execute-failure', key, failure: FAILURE });
    else if (outcome === 1) this.play({ op: 'execute-reschedule', key });
    else {
      this.store.add(key);
      this.play({ op: 'execute-success', key, nbytes: outcome, type: 'number', timings: [] });
    }
  }

  private endRun(key: string): void {
    this.runs.delete(key);
    this.short.delete(key);
  }

  private finishTransfer(worker: string | undefined, mask: number): void {
    if (worker === undefined) return;
    const requested = this.transfers.get(worker)!;
    this.transfers.delete(worker);
    if (mask < 32) this.play({ op: 'gather-network-failure', worker });
    else if (mask < 64) this.play({ op: 'gather-busy', worker });
    else if (mask < 80) this.play({ op: 'gather-failure', worker, failure: FAILURE });
    else {
      const keys = requested.filter((_, bit) => (mask & (1 << (bit % 8))) !== 0);
      for (const key of keys) this.store.add(key);
      this.play({ op: 'gather-success', worker, keys, nbytes: keys.map(() => mask) });
    }
  }

  /** What has not begun is given up, if the very assignment was meant. */
  private forgetStolen({ keys, runIds, states }: StolenReport): void {
    keys.forEach((key, index) => {
      if (!['waiting', 'ready', 'constrained'].includes(states[index]!)) return;
      if (this.expected.get(key) === runIds[index]) this.expected.delete(key);
    });
  }

  private updateData(key: string, nbytes: number): void {
    this.store.add(key);
    this.play({ op: 'update-data', keys: [key], nbytes: [nbytes] });
  }

  private carryOut(instruction: Instruction): void {
    switch (instruction.kind) {
      case 'execute':
        expect(this.runs.has(instruction.key)).toBe(false);
        expect(instruction.dependencies.filter((key) => !this.store.has(key))).toEqual([]);
        this.runs.add(instruction.key);
        if (instruction.isShort) this.short.add(instruction.key);
        break;
      case 'gather':
        expect(this.transfers.has(instruction.worker)).toBe(false);
        expect(this.busy.has(instruction.worker)).toBe(false);
        expect(instruction.keys.filter((key) => this.store.has(key))).toEqual([]);
        this.transfers.set(instruction.worker, instruction.keys);
        break;
      case 'drop-data':
        expect(this.store.delete(instruction.key)).toBe(true);
        break;
      case 'rejoined':
      case 'resumed':
      case 'limit-time':
      case 'abort-execution':
        expect(this.runs.has(instruction.key)).toBe(true);
        break;
      case 'retry-busy-later':
        this.busy.add(instruction.worker);
        break;
      case 'send': {
        const { message } = instruction;
        const isEnd = message.op === 'task-finished' || message.op === 'task-erred';
        if (isEnd && this.expected.get(message.key) === message.runId)
          this.expected.delete(message.key);
        if (message.op === 'steal-response') this.forgetStolen(message);
        if (message.op === 'reschedule') this.expected.delete(message.key);
        break;
      }
    }
  }
}

type StolenReport = Pick<StealResponse, 'keys' | 'runIds' | 'states'>;

const steps = fc.array(step, { maxLength: 120, size: 'max' });

/** Plays the steps, lets everything end well, and frees all. Gives the transitions that were made. */
function live(played: readonly Step[]): string[] {
  const world = new World();
  for (const next of played) world.take(next);
  world.play({ op: 'unpause' });
  let rounds = 0;
  while (world.heal()) expect(++rounds).toBeLessThan(1000);
  expect([...world.expected.keys()]).toEqual([]);
  const states = new Set(Object.values(world.bench.states));
  for (const end of ['memory', 'error', 'released']) states.delete(end);
  expect([...states]).toEqual([]);
  const made = world.bench.kernel.story().map(({ start, target }) => `${start}→${target}`);
  world.play({ op: 'free-keys', keys: KEYS });
  expect(world.bench.states).toEqual({});
  const { peers, nbytes, transferCount } = world.bench.kernel.tables;
  expect([peers.size, nbytes, transferCount]).toEqual([0, 0, 0]);
  return made;
}

it('whatever happens in whatever order, the state stays consistent and every task is answered', () => {
  fc.assert(
    fc.property(steps, (played) => void live(played)),
    effort(300),
  );
});

it('no transition of the table is dead', () => {
  const made = new Set(fc.sample(steps, { seed: 8, numRuns: 150 }).flatMap(live));
  const table = Object.entries(WORKER_TRANSITIONS).flatMap(([start, row]) =>
    Object.keys(row).map((target) => `${start}→${target}`),
  );
  expect(table.filter((transition) => !made.has(transition))).toEqual([]);
});
