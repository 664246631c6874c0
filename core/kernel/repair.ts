/**
 * Repairs a state in the middle of which a stimulus failed. Nothing is undone, because peers have been told a
 * part of it. Instead everything that follows from something else is made anew from what is left: who holds a result,
 * which runs were sent, what has failed, and who wants what.
 */
import { messageOf, YardmasterError } from '../api/errors.ts';
import { keysOf, OPERATIONS } from '../messages/operations.ts';
import type { Stimulus } from '../messages/stimulus.ts';
import {
  blamesWhatHoldsItBack,
  dropFireAndForget,
  recover,
  reportState,
  sendFreeKeys,
  takeBackRun,
} from './task-effects.ts';
import {
  addReplica,
  addToLongRunning,
  addToProcessing,
  addTranslation,
  keepAlive,
  relinkDependents,
  startWaiting,
  unlinkTask,
  unlinkWorker,
} from '../state/relations.ts';
import { FIRE_AND_FORGET } from '../state/cluster.ts';
import { byPriority, type ClientState, type TaskFailure, type TaskState } from '../state/task.ts';
import { isActive, isDone, type TaskStateName } from '../state/state-names.ts';
import { WorkerState } from '../state/worker.ts';
import { EVENT_LOOP_RESOURCE } from '../util/event-loop.ts';
import { sendResume } from './assignment.ts';
import { schedulerFailure } from './ports.ts';
import { showKnownTasks } from './graph-table.ts';
import { tellRemoved, unassignedSince } from './on-membership.ts';
import { checkIdleSaturated } from './occupancy.ts';
import { slotLimitOf } from './placement.ts';
import type { KernelScope } from './scope.ts';
import { settle, transition } from './transitions.ts';

/** Failures of tasks in one stimulus, each of which is followed by another attempt. */
const ATTEMPTS_MAX = 100;
/** Steps of its story that the failure of a task carries. */
const STORY_MAX = 20;

/**
 * Brings the state to a legal end after `stimulus` failed because of `cause`, and follows what results from that. What
 * fails again meanwhile fails by itself: a task that cannot even be failed is forgotten. O(tasks + dependencies +
 * workers) for each of them.
 *
 * @param finish - ends a stimulus, and checks the state
 * @throws what `finish` throws, when the same thing goes wrong again and again
 */
export function repair(
  scope: KernelScope,
  stimulus: Stimulus,
  cause: unknown,
  finish: () => void,
): void {
  const attempt = new Repair(scope, stimulus);
  attempt.concern(cause);
  for (let left = ATTEMPTS_MAX; ; left--) {
    try {
      attempt.rebuild();
      attempt.follow();
      finish();
      attempt.tell();
      return;
    } catch (error) {
      // A plugin whose hooks must not fail says so by this error.
      if (YardmasterError.is(error, 'ERR_PLUGIN_HOOK')) throw error;
      if (left === 0 || !attempt.concern(error)) throw error;
    }
  }
}

/**
 * A scheduler starts again with the state that its process had: everything is made anew from what does not depend on
 * workers that are away. Results that can be computed again, and runs, count when their workers are back.
 * O(tasks + dependencies + workers).
 */
export function forgetPlacements(scope: KernelScope): void {
  new Repair(scope, scope.stimulus as Stimulus).forgetPlacements();
  // No peer is connected.
  scope.outbox.clear();
}

/** The messages that were put into the outbox before. */
interface Sent {
  /** Keys that workers were told to free. */
  readonly freed: ReadonlyMap<WorkerState, ReadonlySet<string>>;
  /** Runs that were sent and not taken back since: the address and the key. */
  readonly runs: ReadonlyMap<string, number>;
  /** The last message to a client about a key. */
  readonly told: ReadonlyMap<string, string>;
}

/** The parts of a state that are kept by a repair. */
interface Facts {
  readonly tasks: readonly TaskState[];
  readonly workers: readonly WorkerState[];
  readonly holders: ReadonlyMap<TaskState, readonly WorkerState[]>;
  readonly runs: ReadonlyMap<TaskState, WorkerState>;
  /** The results that tasks that are gone have left on workers. */
  readonly strays: readonly (readonly [task: TaskState, worker: WorkerState])[];
  readonly seceded: ReadonlySet<TaskState>;
  /** The workers on which actors live, or are being made. */
  readonly hosts: ReadonlyMap<TaskState, WorkerState>;
  readonly translations: readonly (readonly [task: TaskState, worker: WorkerState])[];
  /** The tasks that graphs that are being taken in keep alive. */
  readonly held: readonly (readonly [holder: ClientState, task: TaskState])[];
}

class Repair {
  /** Tasks that the failure concerns. */
  private readonly failed = new Map<TaskState, TaskFailure>();
  /** Tasks that could not even be failed. */
  private readonly dropped = new Set<TaskState>();
  private readonly leaving: ReadonlySet<WorkerState>;
  /** Tasks that were on their way. */
  private readonly begun = new Set<TaskState>();
  private readonly stimulus: Stimulus;
  private error: unknown;
  private hasEnded = false;

  constructor(
    private readonly scope: KernelScope,
    private readonly cause: Stimulus,
  ) {
    // Its sender has got what it asked for: only a task that followed from it is concerned.
    const { stimulusId } = cause;
    this.stimulus = scope.isHandled ? { op: 'keep-alive', worker: '', stimulusId } : cause;
    this.leaving = new Set(leavingWorkers(scope, this.stimulus));
  }

  /** Notes what the failure was about. Returns false when that is known already. */
  concern(cause: unknown): boolean {
    const { scope, stimulus } = this;
    const isFirst = this.error === undefined;
    this.error ??= cause ?? new Error('nothing was thrown');
    const task =
      concernedTask(scope, cause) ?? (isFirst ? reportedTask(scope, stimulus) : undefined);
    scope.stepping = undefined;
    if (task === undefined) return false;
    if (this.dropped.has(task)) return false;
    if (this.failed.has(task)) this.dropped.add(task);
    else this.failed.set(task, failureOf(scope, task.key, this.cause, cause));
    return true;
  }

  /** Makes everything anew that follows from something else. */
  rebuild(): void {
    const { scope } = this;
    if (!this.hasEnded) this.endBegun();
    const sent = sentBefore(scope);
    const known = this.facts(sent);
    const facts = this.cause.op === 'forget-placements' ? this.withoutPlacements(known) : known;
    const states = this.judge(facts, sent);
    this.clear(facts);
    this.link(facts, states);
  }

  /** See {@link forgetPlacements}. When it fails, the repair that follows forgets them, too. */
  forgetPlacements(): void {
    const { scope } = this;
    this.rebuild();
    for (const worker of scope.cluster.workersByRank) worker.slotLimit = slotLimitOf(scope, worker);
    this.announcePeers();
    showKnownTasks(scope);
    this.follow();
  }

  /** The facts that are left when it is not known what workers hold and run. */
  private withoutPlacements(known: Facts): Facts {
    const { begun, scope } = this;
    for (const worker of known.workers) {
      worker.status = 'paused';
      worker.lastSeenMs = scope.nowMs;
      worker.deafMs = 0;
      worker.endingRuns.clear();
      worker.lingeringRuns.clear();
    }
    const holders = new Map([...known.holders].filter(([task]) => !canBeComputedAgain(task)));
    for (const task of known.tasks) {
      task.reservation = 0;
      if (!canBeComputedAgain(task)) continue;
      if (task.countsAsWaiter || isActive(task.state) || task.state === 'memory') begun.add(task);
      if (task.runId >= -1) {
        task.runId = unassignedSince(task.runId < 0 ? scope.nextRunId : task.runId);
      }
    }
    return { ...known, holders, runs: new Map(), seceded: new Set(), translations: [] };
  }

  /** Hooks have not seen the workers and clients of a state that was restored. */
  private announcePeers(): void {
    const { cluster, ports, stimulusId } = this.scope;
    const { workerAdded, clientAdded } = ports.hooks;
    for (const worker of cluster.workersByRank) {
      for (const hook of workerAdded) hook(worker, stimulusId);
    }
    for (const client of cluster.clients.values()) {
      if (client.key === FIRE_AND_FORGET) continue;
      for (const hook of clientAdded) hook(client, stimulusId);
    }
  }

  /** Follows what the tasks need now. */
  follow(): void {
    const { scope, failed } = this;
    const { cluster } = scope;
    for (const worker of cluster.workersByRank) checkIdleSaturated(scope, worker);
    for (const [task, failure] of failed) {
      if (cluster.tasks.get(task.key) !== task || task.state === 'erred') continue;
      scope.blame(task, failure);
      transition(scope, task, 'erred', { cause: task.key, failure });
      settle(scope);
    }
    this.each(
      (task) => task.state === 'erred' && !task.hasLostDependencies && !blamesWhatHoldsItBack(task),
      (task) => recover(scope, [task]),
    );
    this.each(
      (task) => task.state === 'released' && task.runSpec === undefined && !this.isHeld(task),
      (task) => scope.recommend(task, 'forgotten'),
    );
    // The last recommendation is followed first.
    const wanted = [...cluster.tasks.values()].filter((task) => this.isToStart(task));
    for (const task of wanted.sort((a, b) => byPriority(b, a))) scope.recommend(task, 'waiting');
    settle(scope);
    this.each(isSuperfluous, (task) => {
      scope.recommendRelease(task, task.dependentCount === 0 ? 'forgotten' : 'released');
    });
    this.each(
      ({ state }) => isDone(state),
      (task) => dropFireAndForget(scope, task),
    );
  }

  /** Sends the messages that peers wait for. */
  tell(): void {
    const { scope, stimulus } = this;
    const { cluster, outbox } = scope;
    const { told, freed } = sentBefore(scope);
    for (const key of [...keysOf(stimulus), ...[...this.failed.keys()].map((task) => task.key)]) {
      const task = cluster.tasks.get(key);
      if (task === undefined || !isDone(task.state)) continue;
      const op = task.state === 'memory' ? 'key-in-memory' : 'task-erred';
      for (const client of task.whoWants.items) {
        if (told.get(`${client.key} ${key}`) !== op) reportState(scope, task, client);
      }
    }
    this.freeUnknown(freed);
    const { client: name, op } = stimulus as Stimulus & { readonly client?: string };
    const client = name === undefined ? undefined : cluster.clients.get(name);
    if (client === undefined || !OPERATIONS[op].failureEndsWants) return;
    const keys = keysOf(stimulus);
    if (op === 'cancel-keys') {
      const reason = 'stimulus-failed';
      outbox.toClient(client, {
        op: 'cancelled-keys',
        keys,
        reason,
        message: messageOf(this.error),
      });
    } else if (op !== 'client-releases-keys') {
      for (const key of keys) {
        const failure = failureOf(scope, key, this.cause, this.error);
        outbox.toClient(client, { op: 'task-erred', key, blame: key, failure });
      }
    }
  }

  // ---- what is left ----------------------------------------------------------------------------

  /** Ends what the stimulus had begun: its graph, and all that it says of peers that leave. */
  private endBegun(): void {
    this.hasEnded = true;
    const { scope, stimulus } = this;
    const { cluster, intakes } = scope;
    const { client, op } = stimulus as Stimulus & { readonly client?: string };
    // That of the work that it continued, if it did.
    const { stimulusId } = scope;
    const isOver = (intake: (typeof intakes)[number]): boolean =>
      op === 'restart' ||
      intake.stimulusId === stimulusId ||
      (op === 'remove-client' && intake.client.key === client);
    for (const intake of intakes.filter(isOver).reverse()) {
      intake.abandon();
      if (intake.client.key !== client) this.refuse(intake.client, intake.keys);
    }
    for (const task of cluster.tasks.values()) {
      if (task.countsAsWaiter || isActive(task.state)) this.begun.add(task);
    }
    const sender = client === undefined ? undefined : cluster.clients.get(client);
    if (op === 'restart') for (const one of cluster.clients.values()) one.wantsWhat.clear();
    else if (sender !== undefined && op === 'remove-client') {
      sender.wantsWhat.clear();
      cluster.clients.delete(sender.key);
      for (const hook of scope.ports.hooks.clientRemoved) hook(sender, scope.stimulusId);
    } else if (sender !== undefined && OPERATIONS[op].failureEndsWants) {
      for (const key of keysOf(stimulus)) {
        const task = cluster.tasks.get(key);
        if (task !== undefined) sender.wantsWhat.delete(task);
      }
    }
    endReport(scope, this.cause);
    if (op === 'end-recovery') scope.recovery = undefined;
  }

  /** A client whose graph is given up in the middle. */
  private refuse(client: ClientState, keys: readonly string[]): void {
    const { scope } = this;
    for (const key of keys) {
      const task = scope.cluster.tasks.get(key);
      if (task !== undefined) client.wantsWhat.delete(task);
      const failure = failureOf(scope, key, this.cause, this.error);
      scope.outbox.toClient(client, { op: 'task-erred', key, blame: key, failure });
    }
  }

  private facts({ freed, runs: sentRuns }: Sent): Facts {
    const { scope, leaving, dropped, cause } = this;
    const { cluster, firstRunId } = scope;
    const registered = new Set([...cluster.workers.values(), ...cluster.workersByRank]);
    const workers = [...registered].filter((worker) => !leaving.has(worker));
    workers.sort((a, b) => a.sequence - b.sequence);
    const here = new Set(workers);
    const tasks = [...cluster.tasks.values()].filter((task) => {
      return task.state !== 'forgotten' && !dropped.has(task);
    });
    const known = new Set(tasks);
    const strays: [TaskState, WorkerState][] = [];
    const stray = (task: TaskState, worker: WorkerState): void => {
      if (!strays.some((one) => one[0] === task && one[1] === worker)) strays.push([task, worker]);
    };
    const holders = new Map<TaskState, WorkerState[]>();
    const hold = (task: TaskState, worker: WorkerState): void => {
      if (!here.has(worker) || freed.get(worker)?.has(task.key) === true) return;
      if (isDropped(cause, task.key, worker.address)) return;
      if (!known.has(task)) {
        stray(task, worker);
        return;
      }
      const its = holders.get(task);
      if (its === undefined) holders.set(task, [worker]);
      else if (!its.includes(worker)) its.push(worker);
    };
    const runs = new Map<TaskState, WorkerState>();
    const run = (task: TaskState, worker: WorkerState): void => {
      if (!here.has(worker) || runs.has(task)) return;
      const isNew = task.runId >= firstRunId;
      const isSent = sentRuns.get(`${worker.address} ${task.key}`) === task.runId;
      const isTakenBack = !isSent && freed.get(worker)?.has(task.key) === true;
      if (!isSent && (isNew || isTakenBack || task.runId < 0)) return;
      if (known.has(task)) runs.set(task, worker);
      else stray(task, worker);
    };
    const hosts = new Map<TaskState, WorkerState>();
    const seceded = new Set<TaskState>();
    const translations: [TaskState, WorkerState][] = [];
    for (const task of cluster.tasks.values()) {
      for (const worker of task.whoHas.items) hold(task, worker);
      if (task.processingOn !== undefined) run(task, task.processingOn);
    }
    for (const worker of workers) {
      for (const task of worker.hasWhat) hold(task, worker);
      for (const task of worker.processing) run(task, worker);
      for (const task of worker.longRunning) seceded.add(task);
      for (const task of worker.actors) if (known.has(task)) hosts.set(task, worker);
      for (const task of worker.translations) {
        if (known.has(task)) translations.push([task, worker]);
      }
    }
    const intakes = new Set(scope.intakes.map(({ holder }) => holder));
    const held = tasks.flatMap((task) =>
      task.whoWants.items.filter((one) => intakes.has(one)).map((one) => [one, task] as const),
    );
    return { tasks, workers, holders, runs, strays, seceded, hosts, translations, held };
  }

  /** The state of each task, as far as it is not decided anew. Copies and runs that do not count any more are taken back. */
  private judge(facts: Facts, { freed, told }: Sent): ReadonlyMap<TaskState, TaskStateName> {
    const { scope, failed } = this;
    const { holders, runs, hosts } = facts;
    const known = new Set(facts.tasks);
    const given = (task: TaskState, worker: WorkerState): boolean =>
      task.runId < scope.firstRunId && isGivenUp(this.cause, task.key, worker.address);
    const states = new Map<TaskState, TaskStateName>();
    for (const [task, worker] of facts.strays) sendFreeKeys(scope, task, worker);
    const isInMemory = (task: TaskState): boolean => {
      if (failed.has(task) || !holders.has(task)) return false;
      return !task.isActor || holders.get(task)?.includes(hosts.get(task) as WorkerState) === true;
    };
    const mayRun = (task: TaskState, worker: WorkerState): boolean => {
      if (failed.has(task) || task.state !== 'processing' || task.hasLostDependencies) return false;
      if (given(task, worker)) return false;
      return task.dependencies.every((one) => known.has(one) && isInMemory(one));
    };
    for (const task of facts.tasks) {
      const before = task.state;
      const worker = runs.get(task);
      const isKept = worker !== undefined && !isInMemory(task) && mayRun(task, worker);
      if (isInMemory(task)) states.set(task, 'memory');
      else if (isKept) states.set(task, 'processing');
      else if (before === 'erred' && task.blame !== undefined) states.set(task, 'erred');
      else states.set(task, 'released');
      const isFreed = (one: WorkerState): boolean => freed.get(one)?.has(task.key) === true;
      if (states.get(task) !== 'memory') {
        for (const one of holders.get(task) ?? [])
          if (!isFreed(one)) sendFreeKeys(scope, task, one);
        if (before === 'memory' && !failed.has(task)) this.tellLost(task, told);
      }
      if (worker === undefined || isKept) continue;
      if (isInMemory(task) && holders.get(task)?.includes(worker) === true) continue;
      // What its worker has reported to be over occupies no thread there.
      if (given(task, worker)) sendFreeKeys(scope, task, worker);
      else takeBackRun(scope, task, worker, facts.seceded.has(task));
    }
    return states;
  }

  private tellLost(task: TaskState, told: Sent['told']): void {
    for (const client of task.whoWants.items) {
      if (client.isMute || told.get(`${client.key} ${task.key}`) === 'lost-data') continue;
      this.scope.outbox.toClient(client, { op: 'lost-data', key: task.key });
    }
  }

  // ---- what follows from it --------------------------------------------------------------------

  private clear(facts: Facts): void {
    const { scope, leaving } = this;
    const { cluster } = scope;
    const gone = [...cluster.tasks.values()];
    for (const worker of [...facts.workers, ...leaving]) unlinkWorker(worker);
    for (const worker of leaving) worker.rank = -1;
    for (const task of this.dropped) {
      const reason = 'stimulus-failed';
      const message = messageOf(this.error);
      for (const client of task.whoWants.items) {
        scope.outbox.toClient(client, { op: 'cancelled-keys', keys: [task.key], reason, message });
      }
    }
    cluster.reset(facts.tasks, facts.workers);
    const known = new Set(facts.tasks);
    for (const task of gone) {
      unlinkTask(task);
      if (!known.has(task)) task.state = 'forgotten';
    }
    scope.recommendations.clear();
    for (const work of scope.agenda) work.clear();
    scope.refused.clear();
    scope.ruled.clear();
    scope.unproven.length = 0;
    scope.sliceEnd = Infinity;
    scope.isRefillLeft = false;
    scope.holdsQueue = false;
    scope.hasFreedWorker = true;
    scope.changedWorker = undefined;
    const { recovery } = scope;
    for (const worker of leaving) recovery?.forget(worker);
  }

  private link(facts: Facts, states: ReadonlyMap<TaskState, TaskStateName>): void {
    const { scope } = this;
    const { cluster } = scope;
    const { tasks, holders, runs, hosts } = facts;
    for (const task of tasks) {
      task.state = states.get(task) as TaskStateName;
      if (task.state !== 'erred') task.blame = undefined;
    }
    relinkDependents(cluster, tasks);
    cluster.recount(tasks);
    for (const client of cluster.clients.values()) {
      for (const task of [...client.wantsWhat]) {
        if (cluster.tasks.get(task.key) === task) keepAlive(client, task);
        else client.wantsWhat.delete(task);
      }
    }
    for (const [holder, task] of facts.held) keepAlive(holder, task);
    for (const task of tasks) {
      if (task.replicas > 1) cluster.replicasWanted.add(task);
      if (task.state !== 'memory') continue;
      task.type ??= 'unknown';
      for (const worker of holders.get(task) ?? []) addReplica(cluster, task, worker);
      if (task.isActor) hosts.get(task)?.actors.add(task);
    }
    for (const task of tasks) {
      const worker = runs.get(task);
      if (task.state !== 'processing' || worker === undefined) continue;
      addToProcessing(cluster, task, worker);
      if (task.limit !== undefined) sendResume(scope, task, worker);
      cluster.runs.add(task);
      startWaiting(task);
      const resources = task.restrictions?.resources;
      worker.occupyAll(resources, 1);
      if (facts.seceded.has(task) || resources?.has(EVENT_LOOP_RESOURCE) === true) {
        addToLongRunning(cluster, task, worker);
      }
      if (task.isActor) worker.actors.add(task);
    }
    for (const [task, worker] of facts.translations) {
      if (task.state === 'memory' && cluster.isTranslation(task, worker)) {
        addTranslation(cluster, task, worker);
      } else sendFreeKeys(scope, task, worker);
    }
    for (const worker of cluster.workersByRank) {
      worker.executing = new Map(
        [...worker.executing].filter(([task]) => worker.processing.has(task)),
      );
    }
  }

  /** Recommends something for tasks, all of them before any is followed. */
  private each(isMeant: (task: TaskState) => boolean, act: (task: TaskState) => void): void {
    for (const task of [...this.scope.cluster.tasks.values()].filter(isMeant)) act(task);
    settle(this.scope);
  }

  /** A graph that is being taken in knows when the task is to start. */
  private isHeld({ whoWants }: TaskState): boolean {
    return this.scope.intakes.some(({ holder }) => holder !== undefined && whoWants.has(holder));
  }

  private isToStart(task: TaskState): boolean {
    if (task.state !== 'released' || task.runSpec === undefined) return false;
    if (this.begun.has(task) && task.whoWants.size > 0) return true;
    return task.whoWants.items.some(({ isMute }) => !isMute);
  }

  /** Frees results that the worker or client of the stimulus has put somewhere, and that no task stands for. */
  private freeUnknown(freed: Sent['freed']): void {
    const { scope, stimulus, cause } = this;
    const { cluster, outbox, stimulusId } = scope;
    const free = (address: string, key: string): void => {
      const worker = cluster.workers.get(address);
      const task = cluster.tasks.get(key);
      if (worker === undefined || (task !== undefined && worker.hasWhat.has(task))) return;
      if (task?.processingOn === worker || freed.get(worker)?.has(key) === true) return;
      if (cause.op !== 'add-keys') sendFreeKeys(scope, { key }, worker);
      else outbox.toWorker(worker, { op: 'remove-replicas', keys: [key], stimulusId });
    };
    if (cause.op === 'task-finished') free(cause.worker, cause.key);
    else if (cause.op === 'add-keys') for (const key of cause.keys) free(cause.worker, key);
    else if (cause.op === 'update-data') {
      for (const { key, workers } of cause.items) for (const one of workers) free(one, key);
    }
    for (const worker of this.leaving) {
      if (stimulus.op === 'register-worker') {
        outbox.toWorker(worker, { op: 'close', reason: 'stimulus-failed', stimulusId });
      } else if (stimulus.op !== 'workers-lost' && stimulus.op !== 'end-recovery') {
        closeUnlessTold(scope, worker, stimulus);
      }
      const loss = { expected: false, processing: [], recomputed: [], lost: [] };
      const isTold = outbox.events.some(({ topic, message }) => {
        return (
          topic === worker.address && (message as { action?: string }).action === 'remove-worker'
        );
      });
      if (!isTold) tellRemoved(scope, worker, loss);
    }
    if (stimulus.op !== 'restart') return;
    for (const client of cluster.clients.values()) outbox.toClient(client, { op: 'restart' });
    for (const hook of scope.ports.hooks.restarted) hook(stimulusId);
  }
}

function closeUnlessTold(
  { outbox, stimulusId }: KernelScope,
  worker: WorkerState,
  cause: Stimulus,
): void {
  if (cause.op === 'remove-worker' && !cause.close) return;
  if (outbox.toWorkers.some((sent) => sent.worker === worker && sent.message.op === 'close'))
    return;
  outbox.toWorker(worker, { op: 'close', reason: 'scheduler-remove-worker', stimulusId });
}

/** Workers that the stimulus takes away, and the one that it could not let in. */
function leavingWorkers(
  { cluster, nowMs, recovery }: KernelScope,
  stimulus: Stimulus,
): WorkerState[] {
  const all = [...new Set([...cluster.workers.values(), ...cluster.workersByRank])];
  const { op } = stimulus;
  if (op === 'remove-worker') return all.filter(({ address }) => address === stimulus.worker);
  if (op === 'workers-lost') {
    return all.filter(({ address }) => stimulus.workers.includes(address));
  }
  if (op === 'check-worker-ttl') {
    return all.filter(({ status, rank }) => status === 'closed' || rank < 0);
  }
  if (op === 'end-recovery') return [...(recovery?.awaited ?? [])];
  if (op !== 'register-worker') return [];
  const { identity } = stimulus;
  const known = all.filter(({ address, serverId }) => {
    return address === identity.address && serverId === identity.serverId;
  });
  if (known.length > 0) return known;
  return [new WorkerState(identity, -1, cluster.costs, nowMs)];
}

/** Applies what a report says of its sender, although the report could not be handled. */
function endReport({ cluster, recovery }: KernelScope, stimulus: Stimulus): void {
  if (stimulus.op === 'end-recovery' && recovery !== undefined) {
    for (const [worker, status] of recovery.statuses) worker.status = status;
    return;
  }
  const { worker: address } = stimulus as { readonly worker?: string };
  const worker = address === undefined ? undefined : cluster.workers.get(address);
  if (worker === undefined) return;
  if (stimulus.op === 'worker-status-change') worker.status = stimulus.status;
  else if (stimulus.op === 'runs-over') {
    for (const runId of stimulus.runIds) {
      worker.endingRuns.delete(runId);
      worker.lingeringRuns.delete(runId);
    }
  }
}

/** True when the worker has said that it has given up the task, or that its run has ended. */
function isGivenUp(stimulus: Stimulus, key: string, address: string): boolean {
  const { op } = stimulus;
  if (op === 'steal-response') return stimulus.worker === address && stimulus.keys.includes(key);
  if (op !== 'task-finished' && op !== 'task-erred' && op !== 'reschedule') return false;
  return stimulus.key === key && (stimulus.worker ?? address) === address;
}

/** True when the worker has said that it does not hold the result any more. */
function isDropped(stimulus: Stimulus, key: string, address: string): boolean {
  if (stimulus.op !== 'release-worker-data' || stimulus.worker !== address) return false;
  return stimulus.keys.includes(key);
}

/** The task in whose step it happened, or whose state is not legal. */
function concernedTask({ cluster, stepping }: KernelScope, cause: unknown): TaskState | undefined {
  const isKnown = (task: TaskState | undefined): boolean =>
    task !== undefined && cluster.tasks.get(task.key) === task;
  if (isKnown(stepping)) return stepping;
  const key = YardmasterError.is(cause) ? cause.data['key'] : undefined;
  return typeof key === 'string' ? cluster.tasks.get(key) : undefined;
}

/** The task whose end was reported: nothing else says that it is over. */
function reportedTask({ cluster }: KernelScope, stimulus: Stimulus): TaskState | undefined {
  if (stimulus.op !== 'task-finished' && stimulus.op !== 'task-erred') return undefined;
  const task = cluster.tasks.get(stimulus.key);
  return task?.runId === stimulus.runId && task.state !== 'memory' ? task : undefined;
}

function failureOf(
  scope: KernelScope,
  key: string,
  { op, stimulusId }: Stimulus,
  cause: unknown,
): TaskFailure {
  const why = messageOf(cause);
  const story = scope.story.about([key]).slice(-STORY_MAX);
  return schedulerFailure(
    'ERR_INTERNAL',
    `the scheduler failed at ${key} when it handled ${stimulusId} (${op}): ${why}. This is a bug of Yardmaster; please report it with the story of the task`,
    { key, stimulusId, op, cause: why, story },
  );
}

/** Not what a client has put on workers, an actor that exists, or what has lost an input. */
function canBeComputedAgain({
  runSpec,
  runId,
  state,
  isActor,
  hasLostDependencies,
}: TaskState): boolean {
  if (runSpec === undefined || hasLostDependencies) return false;
  return state !== 'memory' || !(isActor || runId === -1);
}

function isSuperfluous(task: TaskState): boolean {
  if (task.isNeeded) return false;
  return task.dependentCount === 0 || (task.state !== 'released' && task.state !== 'erred');
}

/** The messages to peers in this stimulus. O(outbox). */
function sentBefore({ outbox }: KernelScope): Sent {
  const freed = new Map<WorkerState, Set<string>>();
  const runs = new Map<string, number>();
  const told = new Map<string, string>();
  for (const { worker, message } of outbox.toWorkers) {
    if (message.op === 'compute-task') {
      runs.set(`${worker.address} ${message.key}`, message.runId);
    } else if (message.op === 'free-keys' || message.op === 'remove-replicas') {
      const keys = freed.get(worker) ?? new Set();
      freed.set(worker, keys);
      for (const key of message.keys) {
        keys.add(key);
        runs.delete(`${worker.address} ${key}`);
      }
    }
  }
  for (const { client, message } of outbox.toClients) {
    if ('key' in message) told.set(`${client.key} ${message.key}`, message.op);
    else if ('keys' in message) {
      for (const key of message.keys) told.set(`${client.key} ${key}`, message.op);
    }
  }
  return { freed, runs, told };
}
