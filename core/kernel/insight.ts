import {
  CANDIDATES_MAX,
  type Decision,
  type DecisionCandidate,
  type ShadowReport,
  type Why,
} from '../api/insight.ts';
import type {
  KernelSlotName,
  KernelSlots,
  SelectionRules,
  Submission,
  WorkerSelection,
} from '../api/policies.ts';
import type { TaskLimit } from '../state/task-limits.ts';
import type { TaskState, WorkerState } from '../state/task.ts';
import { nextInRing } from '../util/collections.ts';
import { secondsText } from '../util/units.ts';
import { outOf } from '../util/values.ts';
import { knownTasks } from './graph-table.ts';
import {
  candidatesFor,
  combinedScores,
  isUnconstrained,
  selectionPlacesRootish,
  slotCandidates,
} from './placement.ts';
import type { Named, OrderSubject, Placement } from './ports.ts';
import { validWorkers } from './restrictions.ts';
import type { KernelScope } from './scope.ts';
import { missingBytes, Shadow } from './shadow.ts';

/**
 * Explains the decisions of a kernel: on demand, from a ring of recorded ones, and by comparison
 * with shadow policies. Change it between two stimuli only.
 */
export class Insight {
  private log: DecisionLog | undefined;
  private readonly shadows = new Map<KernelSlotName, Shadow>();

  constructor(private readonly scope: KernelScope) {}

  get isRecording(): boolean {
    return this.log !== undefined;
  }

  /** Records the newest decisions from here on; 0 stops it and forgets them. */
  recordDecisions(lengthMax: number): void {
    this.log = lengthMax > 0 ? new DecisionLog(this.scope, lengthMax) : undefined;
    this.refresh();
  }

  /** A decision that was made outside of the kernel, by a plugin. No-op unless decisions are recorded. */
  record(decision: Decision): void {
    this.log?.add(decision);
  }

  /** Explains the present state of the task, and how it got there. */
  why(key: string): Why {
    const { scope, isRecording } = this;
    const task = scope.cluster.tasks.get(key);
    const story = scope.story.about([key]);
    // Data has no transitions when it comes.
    const isComputed = task?.runSpec !== undefined;
    return {
      key,
      state: task?.state ?? 'unknown',
      now:
        task === undefined
          ? [
              'the scheduler does not know the key: it was never submitted, or it is not needed any more',
            ]
          : explainState(scope, task),
      decisions: this.log?.about(key) ?? [],
      isRecording,
      story,
      isStoryCut: isComputed && story.find((record) => record.key === key)?.start !== 'released',
    };
  }

  /** Asks a policy whatever the one in charge of the slot is asked, from here on. */
  startShadow(slot: KernelSlotName, policy: Named<KernelSlots[KernelSlotName]>): void {
    const shadow = new Shadow(this.scope, slot, policy);
    this.shadows.set(slot, shadow);
    shadow.prepare?.(knownTasks(this.scope));
    this.refresh();
  }

  /** Returns what it found, or undefined when there was none. */
  stopShadow(slot: KernelSlotName): ShadowReport | undefined {
    const report = this.shadowReport(slot);
    this.shadows.delete(slot);
    this.refresh();
    return report;
  }

  shadowReport(slot: KernelSlotName): ShadowReport | undefined {
    return this.shadows.get(slot)?.report();
  }

  private refresh(): void {
    const log = this.log === undefined ? [] : [this.log];
    this.scope.watchers = [...log, ...this.shadows.values()];
  }
}

/** The newest decisions, each with its candidates: a bounded ring. */
class DecisionLog implements Watcher {
  private readonly ring: Decision[] = [];
  private next = 0;

  /** @param lengthMax - decisions kept, at least 1 */
  constructor(
    private readonly scope: KernelScope,
    private readonly lengthMax: number,
  ) {}

  placed(event: PlacementEvent): void {
    this.add(explainPlacement(this.scope, event));
  }

  add(decision: Decision): void {
    this.ring[this.next] = decision;
    this.next = nextInRing(this.next, this.lengthMax);
  }

  /** Decisions about this key, oldest first. O(length of the ring). */
  about(key: string): Decision[] {
    const oldestFirst =
      this.ring.length < this.lengthMax
        ? this.ring
        : [...this.ring.slice(this.next), ...this.ring.slice(0, this.next)];
    return oldestFirst.filter((decision) => decision.key === key);
  }
}

// Puts a placement into words, with the candidates as they were at that moment.

interface Explanation {
  readonly rule: string;
  readonly workers: readonly WorkerState[];
}

/** Called right after the decision, when the candidates are still what they were. */
function explainPlacement(scope: KernelScope, event: PlacementEvent): Decision {
  const { task, placement, isRootish } = event;
  const { ports, stimulusId, nowMs: atMs } = scope;
  const isQueuing = isRootish && !isPlacedBySelection(scope, event);
  const { rule, workers } = isRootish
    ? explainQueuing(scope, event)
    : explainSelection(scope, event);
  const outcome = typeof placement === 'string' ? placement : placement.address;
  const { policy } = ports.workerSelection;
  const scorer = isQueuing ? undefined : policy;
  const sums = isQueuing ? undefined : combinedScores(policy, scope, task, workers);
  const candidates = workers.map((worker, index) => {
    const described = describe(scope, task, worker, scorer);
    return sums === undefined ? described : { ...described, score: sums[index] };
  });
  const vetoes = scope.rules.vetoes(task);
  return {
    kind: 'placement',
    key: task.key,
    policy: (isQueuing ? ports.queuing : ports.workerSelection).name,
    outcome,
    rule: vetoes === undefined || placement === 'no-worker' ? rule : `${rule}; ${vetoes}`,
    candidates: candidates
      .sort((a, b) => Number(b.worker === outcome) - Number(a.worker === outcome) || byScore(a, b))
      .slice(0, CANDIDATES_MAX),
    candidateCount: candidates.length,
    stimulusId,
    atMs,
  };
}

/** True when the worker selection policy was asked about a root-ish task: there was an open slot. */
function isPlacedBySelection(scope: KernelScope, { task, placement }: PlacementEvent): boolean {
  if (!selectionPlacesRootish(scope, task)) return false;
  return placement !== 'queued' || scope.cluster.openSlots.size > 0;
}

function explainQueuing(scope: KernelScope, event: PlacementEvent): Explanation {
  const { cluster } = scope;
  const { task, placement } = event;
  const workers = cluster.openSlots.sorted();
  const group = `it is root-ish (group ${task.group.name}, ${task.group.size} tasks)`;
  if (placement === 'queued' || placement === 'no-worker') {
    const rule =
      cluster.running.size === 0
        ? `${group}, and no worker is running`
        : workers.length === 0
          ? `${group}, and no worker has an open slot: it waits in the scheduler`
          : `${group}, and the policy holds it back`;
    return { rule, workers };
  }
  if (isPlacedBySelection(scope, event)) {
    const candidates = slotCandidates(scope, task);
    return {
      rule: `${group}: chosen by worker selection among ${candidates.length} workers with an open slot`,
      workers: candidates,
    };
  }
  if (workers[0] === placement) {
    return { rule: `${group}: the least busy worker with an open slot`, workers };
  }
  return { rule: `${group}: chosen by the policy`, workers };
}

function explainSelection(scope: KernelScope, { task, placement }: PlacementEvent): Explanation {
  const { cluster, ports } = scope;
  const { name, policy } = ports.workerSelection;
  const reason = scope.rules.reasonOf(task);
  if (reason !== undefined) return { rule: reason, workers: [] };
  const valid = validWorkers(cluster, task);
  if (isUnconstrained(scope, task, valid)) {
    const isIdle = cluster.idle.size > 0;
    const workers = isIdle ? [...cluster.idle] : [...cluster.running];
    const pool = isIdle ? `${workers.length} idle workers` : `all workers, none of which is idle`;
    return { rule: `no inputs and no restrictions: chosen from ${pool}`, workers };
  }
  const workers = candidatesFor(scope, task, valid);
  if (placement === 'no-worker') {
    return { rule: `the policy admits the task on none of ${workers.length} candidates`, workers };
  }
  const among = amongWhom(task, workers.length, policy.reach, valid !== undefined);
  if (workers.length === 1) return { rule: `the only candidate: ${among}`, workers };
  const scorers = scope.rules.scorersOf(task);
  if (scorers.length > 0) {
    const all = policy.score === undefined ? scorers : [...scorers, name];
    return { rule: `lowest sum of the scores of ${all.join(' + ')} ${among}`, workers };
  }
  if (policy.select !== undefined) return { rule: `chosen by the policy ${among}`, workers };
  return { rule: `${scoreRule(scope, task, placement as WorkerState, workers)} ${among}`, workers };
}

function amongWhom(
  task: TaskState,
  count: number,
  reach: SelectionRules['reach'],
  isRestricted: boolean,
): string {
  const others = reach === undefined ? '' : ' or have little to do';
  const isByInputs = task.dependencies.length > 0 && !task.isActor && reach !== 'all';
  const holders = isByInputs ? ` that hold inputs${others}` : '';
  const restricted = isRestricted ? ' and may run it' : '';
  return `among ${count} worker${count === 1 ? '' : 's'}${holders}${restricted}`;
}

/** Which step of the fixed rule distinguished the chosen worker from the others. */
function scoreRule(
  scope: KernelScope,
  task: TaskState,
  chosen: WorkerState,
  workers: readonly WorkerState[],
): string {
  const { policy } = scope.ports.workerSelection;
  const scoreOf = (worker: WorkerState): number | undefined =>
    policy.score?.(task, worker, scope.inputs.missingBytes(worker), scope.cluster);
  const best = scoreOf(chosen);
  const equals = workers.filter((worker) => worker !== chosen && scoreOf(worker) === best);
  if (task.isActor) return 'fewest actors, then lowest score,';
  if (equals.length === 0) return 'lowest score';
  if (equals.every((worker) => worker.nbytes > chosen.nbytes)) {
    return `lowest score, and of ${equals.length + 1} equals the fewest stored bytes,`;
  }
  return `lowest score, and of ${equals.length + 1} equals the first,`;
}

function describe(
  scope: KernelScope,
  task: TaskState,
  worker: WorkerState,
  scorer: WorkerSelection | undefined,
): DecisionCandidate {
  const { cluster } = scope;
  const missing = missingBytes(cluster, task, worker);
  const score = scorer?.score?.(task, worker, scope.inputs.missingBytes(worker), cluster);
  return {
    worker: worker.address,
    score,
    ...(task.dependencies.length === 0 ? {} : { missingBytes: missing }),
    occupancyS: worker.occupancyS,
    processingCount: worker.processing.size,
    ...(worker.slotLimit === Infinity ? {} : { openSlots: worker.openSlots }),
  };
}

function byScore(a: DecisionCandidate, b: DecisionCandidate): number {
  return (a.score ?? 0) - (b.score ?? 0);
}

const NAMED_MAX = 5;

/** The present situation of a task in sentences: what it waits for, and who waits for it. */
function explainState(scope: KernelScope, task: TaskState): string[] {
  const lines = [...aboutRecovery(scope, task), ...aboutState(scope, task)];
  const clients = task.whoWants.items.map((client) => client.key);
  if (clients.length > 0) lines.push(`wanted by ${some(clients)}`);
  const waiters = task.waiters.map((waiter) => waiter.key);
  if (waiters.length > 0) lines.push(`kept for ${some(waiters)}`);
  if (clients.length + waiters.length === 0) lines.push('its result is not needed now');
  return lines;
}

/** Between the reading of a journal and the return of its workers nothing starts. */
function aboutRecovery({ recovery }: KernelScope, { state }: TaskState): string[] {
  if (recovery === undefined || state === 'memory' || state === 'erred') return [];
  const awaited = Array.from(recovery.awaited, ({ address }) => address);
  return [
    `nothing starts yet: the scheduler has read its journal, and waits for ${awaited.length} of the workers that it had (${some(awaited)}) until they are back or count as lost (--journal-wait)`,
  ];
}

function aboutState(scope: KernelScope, task: TaskState): string[] {
  const { cluster } = scope;
  switch (task.state) {
    case 'waiting': {
      const missing = task.waitingOn.map(({ key, state }) => `${key} (${state})`);
      return [
        `waits for ${missing.length} of ${task.dependencies.length} inputs: ${some(missing)}`,
      ];
    }
    case 'queued':
      if (task.limit !== undefined) return [aboutLimit(scope, task, task.limit)];
      return [
        `held back in the scheduler, one of ${cluster.queued.size}: ${cluster.openSlots.size} of ${cluster.running.size} workers have an open slot`,
      ];
    case 'no-worker':
      return [whyNoWorker(scope, task)];
    case 'processing':
      return aboutProcessing(task);
    case 'memory': {
      const holders = task.whoHas.items.map((worker) => worker.address);
      return [`its result of ${task.nbytes} bytes is on ${some(holders)}`];
    }
    case 'erred':
      return aboutFailure(task);
    case 'released':
      return [task.runSpec === undefined ? 'it has no definition' : 'not computed, or released'];
    case 'forgotten':
      return ['forgotten'];
  }
}

/** O(tasks that wait for the limit), with a rate. */
function aboutLimit({ cluster }: KernelScope, task: TaskState, limit: TaskLimit): string {
  const { name, max, runningCount, queued, bucket, intervalMs } = limit;
  const text = `waits for its limit, one of ${queued.size}: ${outOf(runningCount, max)} of ${name} run`;
  if (bucket === undefined || intervalMs === undefined) return text;
  const place = limit.queued.sorted().indexOf(task) + 1;
  const waitS = Math.max(0, bucket.timeOf(place) - cluster.nowMs) / 1000;
  return `${text}; one starts every ${secondsText(intervalMs / 1000)}, this one in ${secondsText(waitS)} at the earliest`;
}

function whyNoWorker({ ports, rules }: KernelScope, task: TaskState): string {
  const refused = `the policy ${ports.workerSelection.name} refused every worker; it is asked again when one has less to do`;
  return rules.reasonOf(task) ?? refused;
}

function aboutProcessing(task: TaskState): string[] {
  const worker = task.processingOn;
  if (worker === undefined) return [];
  const seconds = worker.executing.get(task);
  const place = `sent to ${worker.address} (${worker.status}) as run ${task.runId}`;
  return [
    seconds === undefined
      ? `${place}, one of ${worker.processing.size} on ${worker.threadCount} threads`
      : `${place}, running for ${secondsText(seconds)} at its last heartbeat`,
    ...aboutPause(task),
  ];
}

/** A run with a limit may be between two attempts. */
function aboutPause(task: TaskState): string[] {
  const { limit } = task;
  if (limit?.paused.has(task) !== true) return [];
  if (!limit.resuming.has(task)) return ['it waits for its next attempt'];
  const running = outOf(limit.runningCount, limit.max);
  return [`its next attempt waits for its limit: ${running} of ${limit.name} run`];
}

function aboutFailure(task: TaskState): string[] {
  const { exceptionBlame: blame } = task;
  const text = task.blame?.failure.exceptionText ?? 'unknown error';
  if (blame === undefined || blame === task) return [`failed: ${text}`];
  return [`failed because ${blame.key} failed: ${text}`];
}

function some(names: readonly string[]): string {
  if (names.length <= NAMED_MAX) return names.join(', ');
  return `${names.slice(0, NAMED_MAX).join(', ')} and ${names.length - NAMED_MAX} more`;
}

export interface PlacementEvent {
  readonly task: TaskState;
  readonly placement: Placement;
  /** True when the queuing policy decided; otherwise the selection policy did. */
  readonly isRootish: boolean;
}

/**
 * Observes the decisions of policies: called after each decision and before its effects. It changes
 * nothing. Without watchers a decision costs one more comparison.
 */
export interface Watcher {
  placed?(event: PlacementEvent): void;
  /** The tasks of a graph have their ranks. Not called when the client gave them. */
  ranked?(subject: OrderSubject, ranks: ArrayLike<number>): void;
  /** A submission has its generation; the lowest when each task has its own. */
  submitted?(submission: Submission, generation: number): void;
  /** Tasks were linked, dependencies first. */
  readonly prepare?: (tasks: readonly TaskState[]) => void;
}
