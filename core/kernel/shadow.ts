import { messageOf, YardmasterError } from '../api/errors.ts';
import { type Disagreement, SHADOW_FAILURES_MAX, type ShadowReport } from '../api/insight.ts';
import type { KernelSlotName, KernelSlots, Submission } from '../api/policies.ts';
import type { GraphTask } from '../messages/stimulus.ts';
import type { ClusterState } from '../state/cluster.ts';
import { nbytesOf } from '../state/relations.ts';
import type { TaskState, WorkerState } from '../state/task.ts';
import type { PlacementEvent, Watcher } from './insight.ts';
import { choosePlacement, isRootish, selectionPlacesRootish } from './placement.ts';
import type { KernelPorts, Named, OrderSubject, Placement } from './ports.ts';
import { askGenerations, askOrder } from './priorities.ts';
import type { KernelScope } from './scope.ts';

const EXAMPLES_MAX = 100;

/**
 * A policy that decides nothing. It is asked whatever the one in charge is asked, in the same state,
 * and its answers are compared.
 *
 * What it would have changed later is not seen: the state is that which the active policy has made. A
 * queuing policy is asked where tasks go, not how many a worker may have.
 */
export class Shadow implements Watcher {
  readonly prepare: Watcher['prepare'] | undefined;
  private readonly sinceMs: number;
  private decisions = 0;
  private differing = 0;
  private gainS = 0;
  private savedBytes = 0;
  private failures = 0;
  private lastFailure: string | undefined;
  private readonly examples: Disagreement[] = [];
  private readonly precedence = new Precedence();
  private basis: KernelPorts | undefined;
  private ports: KernelPorts | undefined;

  constructor(
    private readonly scope: KernelScope,
    readonly slot: KernelSlotName,
    private readonly candidate: Named<KernelSlots[KernelSlotName]>,
  ) {
    this.sinceMs = scope.nowMs;
    const { policy } = candidate;
    if (slot !== 'queuing' && slot !== 'workerSelection') return;
    if (!('prepare' in policy)) return;
    this.prepare = (tasks) => {
      this.guard(() => policy.prepare?.(tasks, scope.cluster));
    };
  }

  placed({ task, placement, isRootish: asRootish }: PlacementEvent): void {
    const { scope } = this;
    if (this.slot === 'workerSelection') {
      if (asRootish && !this.placesRootish(task)) return;
      this.comparePlacement(task, placement, () => choosePlacement(scope, task, asRootish));
    } else if (this.slot === 'queuing') {
      this.comparePlacement(task, placement, () =>
        choosePlacement(scope, task, isRootish(scope, task)),
      );
    }
  }

  ranked(subject: OrderSubject, ranks: ArrayLike<number>): void {
    if (this.slot !== 'ordering') return;
    const answer = this.ask(() => askOrder(this.scope, subject));
    if (answer === undefined) return;
    this.decisions++;
    const { isSame, active, shadow } = comparePeaks(subject.tasks, ranks, answer);
    if (isSame) return;
    this.disagree({
      subject: this.scope.stimulusId,
      active: `at most ${active} live results`,
      shadow: `at most ${shadow} live results`,
    });
  }

  submitted(submission: Submission, generation: number): void {
    const { scope } = this;
    if (this.slot !== 'fairness') return;
    const answer = this.ask(() => askGenerations(scope, submission));
    if (answer === undefined) return;
    this.decisions++;
    const own = typeof answer === 'number' ? answer : lowest(answer);
    const [active, shadow] = this.precedence.places(generation, own);
    if (active === shadow) return;
    this.disagree({
      subject: `${scope.stimulusId} of ${submission.client}`,
      active: `behind ${active} of the latest submissions`,
      shadow: `behind ${shadow} of them`,
    });
  }

  report(): ShadowReport {
    const { slot, sinceMs, decisions, differing, gainS, savedBytes, failures, lastFailure } = this;
    return {
      slot,
      shadow: this.candidate.name,
      active: this.scope.ports[slot].name,
      sinceMs,
      decisions,
      differing,
      gainS,
      savedBytes,
      failures,
      lastFailure,
      examples: [...this.examples],
    };
  }

  /** True when the policy in charge or this one places the root-ish task. */
  private placesRootish(task: TaskState): boolean {
    const { scope } = this;
    if (selectionPlacesRootish(scope, task)) return true;
    return this.ask(() => selectionPlacesRootish(scope, task)) === true;
  }

  private comparePlacement(task: TaskState, active: Placement, choose: () => Placement): void {
    const shadow = this.ask(choose);
    if (shadow === undefined) return;
    this.decisions++;
    if (shadow === active) return;
    const { cluster } = this.scope;
    const isComparable = typeof active !== 'string' && typeof shadow !== 'string';
    this.disagree({
      subject: task.key,
      active: nameOf(active),
      shadow: nameOf(shadow),
      ...(isComparable
        ? {
            gainS: startS(cluster, task, active) - startS(cluster, task, shadow),
            savedBytes: missingBytes(cluster, task, active) - missingBytes(cluster, task, shadow),
          }
        : {}),
    });
  }

  private disagree(what: Omit<Disagreement, 'stimulusId' | 'atMs'>): void {
    const { stimulusId, nowMs } = this.scope;
    this.differing++;
    this.gainS += what.gainS ?? 0;
    this.savedBytes += what.savedBytes ?? 0;
    this.examples.push({ ...what, stimulusId, atMs: nowMs });
    if (this.examples.length > EXAMPLES_MAX) this.examples.shift();
  }

  /** Asks in the shadow's name: the ports of the kernel have it in the slot for this one question. */
  private ask<T>(question: () => T): T | undefined {
    const { scope } = this;
    const saved = scope.ports;
    scope.ports = this.portsFor(saved);
    try {
      return this.guard(question);
    } finally {
      scope.ports = saved;
    }
  }

  /** A shadow must not do harm: what it throws is counted, and in the end it is left alone. */
  private guard<T>(question: () => T): T | undefined {
    if (this.failures >= SHADOW_FAILURES_MAX) return undefined;
    try {
      return question();
    } catch (error) {
      this.failures++;
      this.lastFailure = messageOf(error);
      return undefined;
    }
  }

  private portsFor(active: KernelPorts): KernelPorts {
    if (this.basis === active && this.ports !== undefined) return this.ports;
    this.basis = active;
    this.ports = {
      ...active,
      [this.slot]: this.candidate,
      onPolicyFailure: ({ what, error }) => {
        // Instead of asking the built-in policy: the failure itself is what is worth knowing.
        throw new YardmasterError('ERR_POLICY', what, {}, { cause: error });
      },
    };
    return this.ports;
  }
}

function nameOf(placement: Placement): string {
  return typeof placement === 'string' ? placement : placement.address;
}

function lowest(generations: ArrayLike<number>): number {
  let least = Infinity;
  for (let index = 0; index < generations.length; index++) {
    least = Math.min(least, generations[index] as number);
  }
  return least;
}

/** Two orders of one graph. */
interface OrderComparison {
  readonly isSame: boolean;
  /** Most results alive at once, if one thread computed the graph in that order. */
  readonly active: number;
  readonly shadow: number;
}

/** O(tasks log tasks + dependencies). */
function comparePeaks(
  tasks: readonly GraphTask[],
  active: ArrayLike<number>,
  shadow: ArrayLike<number>,
): OrderComparison {
  const first = sequence(tasks.length, active);
  const second = sequence(tasks.length, shadow);
  const isSame = first.every((index, position) => index === second[position]);
  const graph = new Graph(tasks);
  const peak = graph.peak(first);
  return { isSame, active: peak, shadow: isSame ? peak : graph.peak(second) };
}

function sequence(count: number, ranks: ArrayLike<number>): Uint32Array {
  const order = Uint32Array.from({ length: count }, (_, index) => index);
  return order.sort((a, b) => (ranks[a] as number) - (ranks[b] as number) || a - b);
}

/** A result is alive from the step after it was computed until its last dependent was. */
class Graph {
  private readonly dependencies: readonly (readonly number[])[];
  private readonly dependentCounts: Uint32Array;

  constructor(tasks: readonly GraphTask[]) {
    const indexByKey = new Map(tasks.map(({ key }, index) => [key, index]));
    this.dependentCounts = new Uint32Array(tasks.length);
    this.dependencies = tasks.map(({ dependencies }) =>
      [...new Set(dependencies)].flatMap((key) => indexByKey.get(key) ?? []),
    );
    for (const indices of this.dependencies) {
      for (const index of indices) this.dependentCounts[index] = this.countOf(index) + 1;
    }
  }

  peak(order: Uint32Array): number {
    const left = this.dependentCounts.slice();
    let live = 0;
    let peak = 0;
    for (const index of order) {
      for (const dependency of this.dependencies[index] ?? []) {
        left[dependency] = (left[dependency] as number) - 1;
        if (left[dependency] === 0) live--;
      }
      if (this.countOf(index) > 0) live++;
      peak = Math.max(peak, live);
    }
    return peak;
  }

  private countOf(index: number): number {
    return this.dependentCounts[index] as number;
  }
}

/** Bytes of inputs that the worker lacks. O(dependencies). */
export function missingBytes(cluster: ClusterState, task: TaskState, worker: WorkerState): number {
  let nbytes = 0;
  for (const dependency of task.dependencies) {
    if (!worker.hasWhat.has(dependency)) nbytes += nbytesOf(cluster, dependency);
  }
  return nbytes;
}

/** Seconds until the worker could start the task: the work ahead of it, and the transfers. */
function startS(cluster: ClusterState, task: TaskState, worker: WorkerState): number {
  return (
    worker.occupancyS / worker.threadCount +
    missingBytes(cluster, task, worker) / cluster.costs.bandwidth
  );
}

/** Submissions that a new one is compared with. */
const KEPT_MAX = 1000;

/** The position of a submission among the latest ones, by two numberings at once. */
class Precedence {
  private readonly active: number[] = [];
  private readonly shadow: number[] = [];

  /** The number of latest submissions that come before this one: by the first numbering, by the second. */
  places(active: number, shadow: number): readonly [active: number, shadow: number] {
    const places = [before(this.active, active), before(this.shadow, shadow)] as const;
    this.active.push(active);
    this.shadow.push(shadow);
    if (this.active.length > KEPT_MAX) {
      this.active.shift();
      this.shadow.shift();
    }
    return places;
  }
}

function before(numbers: readonly number[], number: number): number {
  return numbers.reduce((count, other) => count + Number(other <= number), 0);
}
