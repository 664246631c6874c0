/** A kernel is rebuilt from its journal, and its workers come back. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MsgpackCodec } from '../../../adapters/codecs/msgpack.ts';
import { journalledForm, reportId, reportNumberOf } from '../../../core/messages/operations.ts';
import type { Outbox } from '../../../core/kernel/outbox.ts';
import type { KernelPorts } from '../../../core/kernel/ports.ts';
import { SchedulerKernel } from '../../../core/kernel/kernel.ts';
import { actorOf, failureOf, isData } from '../../../core/kernel/on-recovery.ts';
import type { StatePart } from '../../../core/kernel/snapshot.ts';
import type { HeldResults, HeldRuns } from '../../../core/messages/protocol.ts';
import type { NewStimulus } from '../../../core/api/index.ts';
import type { Stimulus } from '../../../core/messages/stimulus.ts';
import type { TaskState, WorkerState } from '../../../core/state/task.ts';
import { FIRE_AND_FORGET } from '../../../core/state/cluster.ts';
import { effort } from '../../kit/effort.ts';
import { makePorts } from '../../kit/ports.ts';
import { scenario, type Scenario } from '../../kit/random-scenario.ts';
import { play } from '../../kit/random-world.ts';

const codec = new MsgpackCodec();

it.each([
  ['remove-client', 'client'],
  ['client-releases-keys', 'keys'],
  ['client-releases-keys', 'releases-keys'],
  ['client-desires-keys', 'desires-keys'],
  ['set-restrictions', 'restrictions'],
  ['update-data', 'data'],
])('an id that the scheduler gave to "%s" is no report of a client "%s"', (op, client) => {
  const given = { op, client, keys: [], stimulusId: `${op}-5` } as unknown as Stimulus;
  expect(reportNumberOf(given)).toBeUndefined();
  const stimulusId = reportId('update-graph', client, 5);
  expect(reportNumberOf({ ...given, stimulusId })).toBe(5);
});

/** A kernel that keeps its journal in memory, as bytes would bring it back. */
class JournalledKernel extends SchedulerKernel {
  readonly entries: Stimulus[] = [];
  /** A checkpoint from the middle, and the number of entries before it. */
  middle: { readonly parts: StatePart[]; readonly from: number } | undefined;
  private handled = 0;
  private readonly later: Stimulus[];
  private readonly lost: string[];
  private readonly ports: KernelPorts;

  constructor({ options, saturation }: Scenario) {
    const later: Stimulus[] = [];
    const lost: string[] = [];
    const stimulusId = 'journal';
    const hooks = {
      taskTransition: [
        (given: unknown, start: string) => {
          const task = given as TaskState;
          if (start === 'memory' && isData(task) && task.state !== 'memory') lost.push(task.key);
          const failure = failureOf(task);
          if (failure) later.push({ op: 'restore-tasks', failures: [failure], stimulusId });
          const actor = actorOf(task);
          if (actor) later.push({ op: 'restore-tasks', actors: [actor], stimulusId });
        },
      ],
      workerAdded: [
        ({ identity }: { identity?: unknown }) => {
          const worker = identity as WorkerState['identity'];
          later.push({ op: 'register-worker', identity: worker, status: 'paused', stimulusId });
        },
      ],
      workerRemoved: [
        ({ address }: { address: string }) => {
          const op = 'remove-worker';
          later.push({ op, worker: address, expected: true, close: false, stimulusId });
        },
      ],
    };
    const ports = makePorts({ queuing: { workerSaturation: saturation }, hooks: hooks });
    super({ ...options, validate: true }, ports, 0);
    this.later = later;
    this.lost = lost;
    this.ports = ports;
  }

  checkpoint(): StatePart[] {
    return codec.decode(codec.encode([...this.snapshot(true)])) as StatePart[];
  }

  override replacePorts(ports: KernelPorts): void {
    super.replacePorts({ ...ports, hooks: this.ports.hooks });
  }

  override handle(stimulus: Stimulus, nowMs: number): Outbox {
    const entry = journalledForm(stimulus, this.nextRunId);
    if (entry !== undefined) this.entries.push(codec.decode(codec.encode(entry)) as Stimulus);
    const outbox = super.handle(stimulus, nowMs);
    this.entries.push(...this.later.splice(0));
    const lostData = this.lost.splice(0);
    const ends = { op: 'restore-tasks', lostData, firstRunId: this.nextRunId } as const;
    if (lostData.length > 0) this.entries.push({ ...ends, stimulusId: 'journal' });
    if (++this.handled >= CHECKPOINT_AT && this.middle === undefined && !this.isUnsettled) {
      this.middle = { parts: this.checkpoint(), from: this.entries.length };
    }
    return outbox;
  }
}

/** Stimuli before the checkpoint in the middle. */
const CHECKPOINT_AT = 15;

/** A checkpoint, and the entries behind it. */
interface Contents {
  readonly parts: readonly StatePart[];
  readonly entries: readonly Stimulus[];
}

/** A second kernel that reads the journal of the first one; `say` hands it a stimulus. */
class Restarted {
  readonly kernel: SchedulerKernel;
  private count = 0;

  constructor(
    { parts, entries }: Contents,
    { options, saturation }: Scenario,
    readonly nextRunId: number,
  ) {
    const ports = makePorts({ queuing: { workerSaturation: saturation } });
    this.kernel = new SchedulerKernel({ ...options, validate: true }, ports, 0);
    if (parts.length > 0) {
      this.kernel.restore(parts);
      this.say({ op: 'forget-placements' });
    }
    for (const entry of entries) {
      if (entry.op === 'begin-recovery') continue;
      this.say(entry);
      while (this.kernel.isUnsettled) this.say({ op: 'continue' });
    }
    this.say({ op: 'begin-recovery', nextRunId });
  }

  say(stimulus: NewStimulus): Outbox {
    const stimulusId = `again-${++this.count}`;
    return this.kernel.handle({ stimulusId, ...stimulus }, 1e6 + this.count);
  }

  /** The worker comes back as the first kernel knew it. */
  return(worker: WorkerState): Outbox {
    const { identity } = worker;
    const held = heldBy(worker);
    return this.say({
      op: 'register-worker',
      identity,
      status: 'running',
      held,
      runs: runsOn(worker),
    });
  }

  end(): void {
    this.say({ op: 'end-recovery' });
    while (this.kernel.isUnsettled) this.say({ op: 'continue' });
  }
}

function heldBy({ hasWhat }: WorkerState): HeldResults {
  const tasks = [...hasWhat];
  return {
    keys: tasks.map(({ key }) => key),
    runIds: tasks.map(({ runId }) => runId),
    nbytes: tasks.map(({ nbytes }) => Math.max(0, nbytes)),
    types: tasks.map(({ type }) => type ?? 'unknown'),
  };
}

function runsOn({ processing, longRunning }: WorkerState): HeldRuns {
  const tasks = [...processing];
  return {
    keys: tasks.map(({ key }) => key),
    runIds: tasks.map(({ runId }) => runId),
    seceded: tasks.map((task) => longRunning.has(task)),
  };
}

function played(given: Scenario): JournalledKernel {
  const kernel = new JournalledKernel(given);
  play(given, kernel);
  while (kernel.isUnsettled) {
    kernel.handle({ op: 'continue', stimulusId: 'last' }, 1e6);
  }
  return kernel;
}

function wantsOf({ cluster }: SchedulerKernel): Record<string, string[]> {
  const wants = [...cluster.clients.values()]
    .filter(({ key, wantsWhat }) => key !== FIRE_AND_FORGET && wantsWhat.size > 0)
    .map(({ key, wantsWhat }) => [key, Array.from(wantsWhat, (task) => task.key).sort()] as const);
  return Object.fromEntries(wants);
}

function inMemory({ cluster }: SchedulerKernel): string[] {
  const tasks = [...cluster.tasks.values()];
  return tasks.filter((task) => task.state === 'memory' && task.isNeeded).map(({ key }) => key);
}

describe.each([
  ['its journal', ({ entries }: JournalledKernel): Contents => ({ parts: [], entries })],
  [
    'a checkpoint of it',
    (kernel: JournalledKernel): Contents => ({ parts: kernel.checkpoint(), entries: [] }),
  ],
  [
    'a checkpoint and what came behind it',
    ({ middle, entries }: JournalledKernel): Contents => ({
      parts: middle?.parts ?? [],
      entries: entries.slice(middle?.from ?? 0),
    }),
  ],
])('a kernel that is read from %s', (_, contentsOf) => {
  it('has all results again when its workers are back, and clients want what they wanted', () => {
    fc.assert(
      fc.property(scenario, (given) => {
        const before = played(given);
        const { cluster, nextRunId } = before;
        if (before.isUnsettled) return;
        const after = new Restarted(contentsOf(before), given, nextRunId + 100);
        for (const worker of cluster.workersByRank) after.return(worker);
        expect(after.kernel.awaitedWorkers?.size).toBe(0);
        after.end();
        const lost = inMemory(before).filter(
          (key) => after.kernel.cluster.tasks.get(key)?.state !== 'memory',
        );
        expect(lost).toEqual([]);
        expect(wantsOf(after.kernel)).toEqual(wantsOf(before));
      }),
      { seed: 1, ...effort(40) },
    );
  });

  it('is sound when its workers do not come back', () => {
    fc.assert(
      fc.property(scenario, (given) => {
        const before = played(given);
        if (before.isUnsettled) return;
        const after = new Restarted(contentsOf(before), given, before.nextRunId + 100);
        after.end();
        expect(after.kernel.cluster.workersByRank).toEqual([]);
      }),
      { seed: 1, ...effort(40) },
    );
  });
});

it('a first step of a restart that fails still forgets what workers held and ran', () => {
  const first = new SchedulerKernel({}, makePorts(), 0);
  const address = 'tcp://w:1';
  const identity = { address, serverId: 's', name: 'w', host: 'h', threadCount: 1 };
  const say = (stimulus: NewStimulus): Outbox =>
    first.handle({ stimulusId: stimulus.op, ...stimulus }, 0);
  say({
    op: 'register-worker',
    identity: { ...identity, memoryLimitBytes: 0, resources: {} },
    status: 'running',
  });
  const tasks = [
    { key: 'a', dependencies: [], runSpec: 'a' },
    { key: 'b', dependencies: ['a'], runSpec: 'b' },
  ];
  say({ op: 'register-client', client: 'c' });
  say({ op: 'update-graph', client: 'c', tasks, keys: ['b'] });
  const report = { worker: address, key: 'a', runId: 0, nbytes: 1, type: 'number', timings: [] };
  say({ op: 'task-finished', ...report });
  const second = new SchedulerKernel({ validate: true }, makePorts(), 0);
  second.restore([...first.snapshot(true)]);
  const forget: Stimulus = { op: 'forget-placements', stimulusId: 'journal' };
  const { cluster } = second;
  const { reset } = cluster;
  cluster.reset = () => {
    cluster.reset = reset;
    throw new Error('planted');
  };
  expect(() => second.handle(forget, 1)).toThrow('planted');
  second.recover(forget, new Error('planted'));
  const states = Array.from(second.cluster.tasks.values(), ({ key, state }) => [key, state]);
  expect(first.cluster.tasks.get('b')?.state).toBe('processing');
  expect(states).toEqual([
    ['a', 'no-worker'],
    ['b', 'waiting'],
  ]);
  expect(second.cluster.workers.get(address)?.status).toBe('paused');
});
