import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MsgpackCodec } from '../../../../adapters/codecs/msgpack.ts';
import { best } from '../../../../policies/ordering/best.ts';
import { coAssign } from '../../../../policies/queuing/co-assign.ts';
import { family } from '../../../../policies/queuing/family.ts';
import { mars } from '../../../../policies/queuing/mars.ts';
import { balanced } from '../../../../policies/worker-selection/balanced.ts';
import { localityFirst } from '../../../../policies/worker-selection/locality-first.ts';
import { weightedFairShare } from '../../../../policies/fairness/weighted-fair-share.ts';
import type { Outbox } from '../../../../core/kernel/outbox.ts';
import { SchedulerKernel } from '../../../../core/kernel/kernel.ts';
import type { StatePart } from '../../../../core/kernel/snapshot.ts';
import { digestOfState } from '../../../../core/log/digest.ts';
import type { Stimulus } from '../../../../core/messages/stimulus.ts';
import { effort } from '../../../kit/effort.ts';
import { makePorts, type OwnPolicies } from '../../../kit/ports.ts';
import { scenario, type Scenario } from '../../../kit/random-scenario.ts';
import { play } from '../../../kit/random-world.ts';
import { RULES } from '../../../kit/rules.ts';
import { differenceOf } from './same-state.ts';
import { made } from '../../../kit/made.ts';

type Make = () => OwnPolicies;

const POLICIES: Readonly<Record<string, (saturation: number) => OwnPolicies>> = {
  'the default ones': () => ({}),
  'families and shares': (saturation) => ({
    queuing: made(family, {
      workerSaturation: saturation === Infinity ? 'inf' : saturation,
      familySize: 3,
    }),
    fairness: made(weightedFairShare, { weights: { c: 3 } }),
    workerSelection: made(balanced),
  }),
  'neighbours together': () => ({
    queuing: made(coAssign),
    workerSelection: made(localityFirst),
    ordering: made(best),
  }),
  'rules of several extensions': () => ({ rules: RULES }),
  'those of Mars': () => ({ queuing: made(mars), workerSelection: made(localityFirst) }),
};

/** What was sent, without how tasks are computed, which a snapshot leaves out. */
function sentIn({ toWorkers, toClients, events }: Outbox): string {
  const known = (name: string, value: unknown): unknown => (name === 'runSpec' ? 0 : value);
  return JSON.stringify(
    [
      toWorkers.map(({ worker, message }) => [worker.address, message]),
      toClients.map(({ client, message }) => [client.key, message]),
      events,
    ],
    known,
  );
}

/** A kernel that is copied every now and then; the copy has to decide as it does from there on. */
class CopiedKernel extends SchedulerKernel {
  copies = 0;
  private twin: SchedulerKernel | undefined;
  private count = 0;

  constructor(
    private readonly played: Scenario,
    private readonly makePolicies: Make,
    private readonly copyEvery: number,
    private readonly sliceTransitions: number,
  ) {
    super(...argumentsOf(played, makePolicies, sliceTransitions));
  }

  override handle(stimulus: Stimulus, nowMs: number): Outbox {
    const outbox = super.handle(stimulus, nowMs);
    const { twin } = this;
    if (twin !== undefined) {
      expect(sentIn(twin.handle(stimulus, nowMs))).toBe(sentIn(outbox));
      expect(twin.isUnsettled).toBe(this.isUnsettled);
    }
    if (++this.count % this.copyEvery === 0 && this.isQuiet) this.copy();
    return outbox;
  }

  compareNow(): void {
    if (this.twin === undefined) return;
    expect(digestOfState(this.twin.cluster)).toBe(digestOfState(this.cluster));
    expect(differenceOf(this, this.twin)).toBeUndefined();
  }

  private copy(): void {
    this.compareNow();
    const codec = new MsgpackCodec();
    const parts = [...this.snapshot()].map((part) => {
      return codec.decode(codec.encodeShared(part).slice()) as StatePart;
    });
    const [options, ports] = argumentsOf(this.played, this.makePolicies, this.sliceTransitions);
    this.twin = new SchedulerKernel(options, ports, this.cluster.nowMs);
    this.twin.restore(parts);
    this.copies++;
    this.compareNow();
  }
}

function argumentsOf(
  { saturation, options }: Scenario,
  makePolicies: Make,
  sliceTransitions: number,
): ConstructorParameters<typeof SchedulerKernel> {
  const ports = makePorts({
    queuing: { workerSaturation: saturation },
    policies: makePolicies(),
  });
  return [{ ...options, validate: true, sliceTransitions }, ports, 0];
}

describe('a kernel that is restored from a snapshot', () => {
  it.each(Object.keys(POLICIES))(
    'has the same state and decides as the one before, with %s',
    (name) => {
      let copies = 0;
      const property = fc.property(
        scenario,
        fc.constantFrom(1, 3, 10),
        fc.constantFrom(Infinity, 2, 8),
        (next, copyEvery, slices) => {
          const steps = next.steps.filter(({ what }) => what !== 'replace-policies');
          const make = (): OwnPolicies => POLICIES[name]!(next.saturation);
          const kernel = new CopiedKernel(next, make, copyEvery, slices);
          play({ ...next, steps }, kernel);
          kernel.compareNow();
          copies += kernel.copies;
        },
      );
      fc.assert(property, effort(15));
      expect(copies).toBeGreaterThan(0);
    },
  );
});

it('has its tasks in parts that fit into frames, however large their arguments are', () => {
  const kernel = new SchedulerKernel({}, makePorts(), 0);
  const runSpec = { args: new Uint8Array(20 * 2 ** 20) };
  const keys = Array.from({ length: 7 }, (_, n) => `task-${n}`);
  const tasks = keys.map((key) => ({ key, dependencies: [], runSpec }));
  kernel.handle({ op: 'update-graph', client: 'c', tasks, keys, stimulusId: 'graph' }, 0);
  const parts = [...kernel.snapshot(true)].filter(({ part }) => part === 'tasks');
  expect(parts.map((part) => 'runSpecs' in part && part.runSpecs?.length)).toEqual([3, 3, 1]);
});

it('knows what its tasks stand for, also where the snapshot leaves out how they are computed', () => {
  const kernel = new SchedulerKernel({}, makePorts(), 0);
  const graph = (definition: string): Stimulus => ({
    op: 'update-graph',
    client: 'c',
    tasks: [{ key: 'a', dependencies: [], runSpec: { definition, args: [1] } }],
    keys: ['a'],
    stimulusId: definition,
  });
  kernel.handle(graph('first'), 0);
  const twin = new SchedulerKernel({}, makePorts(), 0);
  twin.restore([...kernel.snapshot()]);
  expect(twin.cluster.tasks.get('a')?.runSpec).toEqual({ definition: 'first' });
  const [refused] = twin.handle(graph('other'), 1).toClients;
  expect(refused?.message).toMatchObject({ op: 'cancelled-keys', taken: 'a' });
});
