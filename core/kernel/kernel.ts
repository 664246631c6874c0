import type { Stimulus } from '../messages/stimulus.ts';
import type { ClusterState } from '../state/cluster.ts';
import type { WorkerState } from '../state/task.ts';
import { unreachable } from '../util/values.ts';
import { offerAll, offerRefused, refillFromQueue, startLimited } from './fill-slots.ts';
import { showKnownTasks } from './graph-table.ts';
import { Insight } from './insight.ts';
import { checkIdleSaturated } from './occupancy.ts';
import {
  onCancelKeys,
  onClientDesiresKeys,
  onClientReleasesKeys,
  onContinueGraph,
  onContinueSettling,
  onHeartbeatClient,
  onRegisterClient,
  onRemoveClient,
  onReportKey,
  onRestart,
  onRetry,
  onUpdateGraph,
} from './on-client.ts';
import {
  onAddKeys,
  onMoveReplicas,
  onReleaseWorkerData,
  onRequestRefreshWhoHas,
  onUpdateData,
  onWantReplicas,
} from './on-data.ts';
import { onReleaseTasks, onSetPriority, onSetRestrictions } from './on-keys.ts';
import {
  onCheckNoWorkersTimeout,
  onCheckWorkerTtl,
  onHeartbeat,
  onRegisterWorker,
  onRemoveWorker,
  onSchedulerStalled,
  onSetWorkerStatus,
  onStatusChange,
  onWorkersLost,
  refreshNoWorkersClock,
} from './on-membership.ts';
import { isDeferredUntilRecovered, onRecovery } from './on-recovery.ts';
import {
  onLongRunning,
  onReschedule,
  onRunsOver,
  onStealResponse,
  onStealTasks,
  onTaskErred,
  onTaskFinished,
} from './on-worker-report.ts';
import type { Outbox } from './outbox.ts';
import { slotLimitOf } from './placement.ts';
import {
  DEFAULT_KERNEL_OPTIONS,
  type HookCalls,
  type KernelOptions,
  type KernelPorts,
} from './ports.ts';
import { repair } from './repair.ts';
import { restoreSnapshot } from './restore-snapshot.ts';
import { KernelScope } from './scope.ts';
import type { StatePart } from './state-parts.ts';
import type { TransitionRecord } from './story.ts';
import { takeSnapshot } from './take-snapshot.ts';
import { settle, settleUnproven } from './transitions.ts';
import { validateCluster } from './validate.ts';

/**
 * The scheduler as a function: a stimulus goes in, messages come out.
 *
 * Deterministic: the same stimuli at the same times give the same messages, in the same order. It has
 * no clock, timer, randomness, I/O, injection or promise; all effects leave through the outbox. It
 * changes its state in place, so it must not be entered again from a hook.
 */
export class SchedulerKernel {
  /** Explains the kernel's decisions. */
  readonly insight: Insight;
  private readonly scope: KernelScope;

  constructor(options: Partial<KernelOptions>, ports: KernelPorts, nowMs: number) {
    this.scope = new KernelScope({ ...DEFAULT_KERNEL_OPTIONS, ...options }, ports, nowMs);
    this.insight = new Insight(this.scope);
  }

  get cluster(): ClusterState {
    return this.scope.cluster;
  }

  get options(): KernelOptions {
    return this.scope.options;
  }

  /**
   * The client and the stimulus id of the pending graph. While there is one, it advances with each
   * `continue-graph` of that id.
   */
  get intake(): { readonly client: string; readonly stimulusId: string } | undefined {
    const [intake] = this.scope.intakes;
    return intake === undefined
      ? undefined
      : { client: intake.client.key, stimulusId: intake.stimulusId };
  }

  /** Whether the graph of this stimulus is being submitted, or waits for that. */
  isTakingIn(stimulusId: string): boolean {
    return this.scope.intakes.some((intake) => intake.stimulusId === stimulusId);
  }

  /** Whether a stimulus has left work to `continue-settling`. */
  get isUnsettled(): boolean {
    const { isRefillLeft, recommendations, visits, continuations } = this.scope;
    if (isRefillLeft || !recommendations.deferredReleases.isEmpty) return true;
    return !visits.isEmpty || continuations.length > 0;
  }

  /** Whether nothing is under way that a later stimulus continues: no graph, no slice, no recovery. */
  get isQuiet(): boolean {
    const { intakes, recovery } = this.scope;
    return !this.isUnsettled && intakes.length === 0 && recovery === undefined;
  }

  /** All that later decisions depend on: see `takeSnapshot`. Only while it {@link isQuiet}. */
  snapshot(): Generator<StatePart, void, undefined> {
    return takeSnapshot(this.scope);
  }

  /**
   * Before the first stimulus: from here on this kernel decides as the one whose state it is.
   * @throws StateError when the parts are no complete state of this version
   */
  restore(parts: readonly StatePart[]): void {
    restoreSnapshot(this.scope, parts);
  }

  /** No run has this id or a later one. */
  get nextRunId(): number {
    return this.scope.nextRunId;
  }

  /** Workers that a journal knows and that are not back yet; undefined when no recovery is under way. */
  get awaitedWorkers(): ReadonlySet<WorkerState> | undefined {
    return this.scope.recovery?.awaited;
  }

  /** Transitions executed so far. */
  get transitionCounter(): number {
    return this.scope.transitionCounter;
  }

  /**
   * Applies one stimulus completely. The outbox is valid until the next call.
   *
   * @param nowMs - the clock of the caller; must not go back
   * @throws YardmasterError `ERR_INVARIANT`, `ERR_TRANSITION`: a bug; the state is not to be trusted
   */
  handle(stimulus: Stimulus, nowMs: number): Outbox {
    const { scope } = this;
    scope.outbox.clear();
    scope.nowMs = nowMs;
    scope.stimulusId = stimulus.stimulusId;
    scope.story.begin(stimulus.stimulusId);
    scope.firstRunId = scope.nextRunId;
    scope.stepping = undefined;
    scope.isHandled = false;
    scope.killTimeoutMs = undefined;
    scope.hasFreedWorker = false;
    scope.hasNewMetrics = false;
    scope.isQueueRefused = false;
    scope.holdsQueue = false;
    scope.isRefillLeft = false;
    scope.sliceEnd = scope.transitionCounter + scope.options.sliceTransitions;
    if (scope.recovery === undefined || !isDeferredUntilRecovered(scope, stimulus)) {
      this.dispatch(stimulus);
    }
    scope.isHandled = true;
    this.finish();
    if (scope.options.validate) validateCluster(scope);
    return scope.outbox;
  }

  /**
   * After `handle` threw `cause` for this stimulus: brings the state to a legal end, and says so to those whom it
   * concerns. The same state, stimulus and cause give the same messages. O(tasks + dependencies + workers).
   *
   * @returns what was sent before the failure, and what follows from it
   * @throws YardmasterError when the state is not to be trusted
   */
  recover(stimulus: Stimulus, cause: unknown): Outbox {
    const { scope } = this;
    repair(scope, stimulus, cause, () => {
      this.finish();
      validateCluster(scope);
    });
    return scope.outbox;
  }

  /**
   * Checks every invariant. O(tasks + dependencies + workers).
   * @throws YardmasterError `ERR_INVARIANT`
   */
  validate(): void {
    validateCluster(this.scope);
  }

  /** Follows all recommendations, and fills what has become free. */
  private finish(): void {
    const { scope } = this;
    settle(scope);
    settleUnproven(scope);
    if (scope.cluster.limits.open.size > 0) startLimited(scope);
    // Downstream tasks of this stimulus are placed by now, so queued tasks come after them.
    if (scope.cluster.queued.size > 0) refillFromQueue(scope);
    if (scope.refused.size > 0) offerRefused(scope);
    const { running, noWorkersSinceMs } = scope.cluster;
    if (running.size === 0 || noWorkersSinceMs !== undefined) refreshNoWorkersClock(scope);
  }

  /** Puts other policies and hooks into place. Between two stimuli only. O(workers + tasks). */
  replacePorts(ports: KernelPorts): void {
    const { scope } = this;
    const before = scope.ports;
    scope.ports = ports;
    showKnownTasks(scope, before);
    for (const worker of scope.cluster.workersByRank) {
      worker.slotLimit = slotLimitOf(scope, worker);
      checkIdleSaturated(scope, worker);
    }
  }

  /** Calls other hooks from here on, and changes nothing else. Between two stimuli only. */
  protected replaceHooks(hooks: HookCalls): void {
    this.scope.ports = { ...this.scope.ports, hooks };
  }

  /** What happened lately to these keys, or because of these stimuli; oldest first. */
  story(...keysOrStimuli: string[]): TransitionRecord[] {
    return keysOrStimuli.length === 0
      ? this.scope.story.all()
      : this.scope.story.about(keysOrStimuli);
  }

  private dispatch(stimulus: Stimulus): void {
    const { scope } = this;
    switch (stimulus.op) {
      case 'task-finished':
        return onTaskFinished(scope, stimulus);
      case 'task-erred':
        return onTaskErred(scope, stimulus);
      case 'reschedule':
        return onReschedule(scope, stimulus);
      case 'long-running':
      case 'runs-over':
      case 'steal-response':
      case 'add-keys':
      case 'request-refresh-who-has':
      case 'release-worker-data':
      case 'worker-status-change':
      case 'register-worker':
      case 'heartbeat-worker':
      case 'remove-worker':
        return this.dispatchOfWorker(stimulus);
      case 'log-event':
        return stimulus.topics.forEach((topic) => scope.outbox.event(topic, stimulus.message));
      case 'keep-alive':
        return;
      case 'move-replicas':
      case 'want-replicas':
      case 'set-worker-status':
      case 'steal-tasks':
      case 'set-restrictions':
      case 'release-tasks':
        return this.dispatchOfPlugin(stimulus);
      case 'register-client':
      case 'remove-client':
      case 'heartbeat-client':
      case 'update-graph':
      case 'client-desires-keys':
      case 'client-releases-keys':
      case 'cancel-keys':
      case 'retry':
      case 'set-priority':
      case 'update-data':
      case 'report-key':
        return this.dispatchOfClient(stimulus);
      case 'policies-replaced':
      case 'workers-lost':
      case 'scheduler-stalled':
      case 'check-worker-ttl':
      case 'check-no-workers-timeout':
      case 'continue-graph':
      case 'continue-settling':
      case 'restart':
        return this.dispatchOfHost(stimulus);
      case 'begin-recovery':
      case 'end-recovery':
      case 'restore-tasks':
        return onRecovery(scope, stimulus);
      default:
        return unreachable(stimulus);
    }
  }

  private dispatchOfWorker(stimulus: WorkerStimulus): void {
    const { scope } = this;
    switch (stimulus.op) {
      case 'long-running':
        return onLongRunning(scope, stimulus);
      case 'runs-over':
        return onRunsOver(scope, stimulus);
      case 'steal-response':
        return onStealResponse(scope, stimulus);
      case 'add-keys':
        return onAddKeys(scope, stimulus);
      case 'request-refresh-who-has':
        return onRequestRefreshWhoHas(scope, stimulus);
      case 'release-worker-data':
        return onReleaseWorkerData(scope, stimulus);
      case 'worker-status-change':
        return onStatusChange(scope, stimulus);
      case 'register-worker':
        return onRegisterWorker(scope, stimulus);
      case 'heartbeat-worker':
        return onHeartbeat(scope, stimulus);
      case 'remove-worker':
        return onRemoveWorker(scope, stimulus);
      default:
        return unreachable(stimulus);
    }
  }

  private dispatchOfPlugin(stimulus: PluginStimulus): void {
    const { scope } = this;
    switch (stimulus.op) {
      case 'move-replicas':
        return onMoveReplicas(scope, stimulus);
      case 'want-replicas':
        return onWantReplicas(scope, stimulus);
      case 'set-worker-status':
        return onSetWorkerStatus(scope, stimulus);
      case 'steal-tasks':
        return onStealTasks(scope, stimulus);
      case 'set-restrictions':
        return onSetRestrictions(scope, stimulus);
      case 'release-tasks':
        return onReleaseTasks(scope, stimulus);
      default:
        return unreachable(stimulus);
    }
  }

  private dispatchOfClient(stimulus: ClientStimulus): void {
    const { scope } = this;
    switch (stimulus.op) {
      case 'register-client':
        return onRegisterClient(scope, stimulus);
      case 'remove-client':
        return onRemoveClient(scope, stimulus);
      case 'heartbeat-client':
        return onHeartbeatClient(scope, stimulus);
      case 'update-graph':
        return onUpdateGraph(scope, stimulus);
      case 'client-desires-keys':
        return onClientDesiresKeys(scope, stimulus);
      case 'client-releases-keys':
        return onClientReleasesKeys(scope, stimulus);
      case 'cancel-keys':
        return onCancelKeys(scope, stimulus);
      case 'retry':
        return onRetry(scope, stimulus);
      case 'set-priority':
        return onSetPriority(scope, stimulus);
      case 'update-data':
        return onUpdateData(scope, stimulus);
      case 'report-key':
        return onReportKey(scope, stimulus);
      default:
        return unreachable(stimulus);
    }
  }

  private dispatchOfHost(stimulus: HostStimulus): void {
    const { scope } = this;
    switch (stimulus.op) {
      case 'policies-replaced':
        return offerAll(scope);
      case 'workers-lost':
        return onWorkersLost(scope, stimulus);
      case 'scheduler-stalled':
        return onSchedulerStalled(scope, stimulus);
      case 'check-worker-ttl':
        return onCheckWorkerTtl(scope);
      case 'check-no-workers-timeout':
        return onCheckNoWorkersTimeout(scope);
      case 'continue-graph':
        return onContinueGraph(scope);
      case 'continue-settling':
        return onContinueSettling(scope);
      case 'restart':
        return onRestart(scope);
      default:
        return unreachable(stimulus);
    }
  }
}

// Stimuli by where they come from, as the kernel dispatches them.

/** What comes with the name of a client. */
type ClientStimulus = Extract<Stimulus, { readonly client: string }>;

/** What a worker says of itself, and of what it holds. */
type WorkerStimulus = Extract<
  Stimulus,
  {
    readonly op:
      | 'long-running'
      | 'runs-over'
      | 'steal-response'
      | 'add-keys'
      | 'request-refresh-who-has'
      | 'release-worker-data'
      | 'worker-status-change'
      | 'register-worker'
      | 'heartbeat-worker'
      | 'remove-worker';
  }
>;

/** What plugins ask for: the Active Memory Manager, work stealing, and others. */
type PluginStimulus = Extract<
  Stimulus,
  {
    readonly op:
      | 'move-replicas'
      | 'want-replicas'
      | 'set-worker-status'
      | 'steal-tasks'
      | 'set-restrictions'
      | 'release-tasks';
  }
>;

/** Stimuli of the host itself: a timer, or a continuation. */
type HostStimulus = Extract<
  Stimulus,
  {
    readonly op:
      | 'policies-replaced'
      | 'workers-lost'
      | 'scheduler-stalled'
      | 'check-worker-ttl'
      | 'check-no-workers-timeout'
      | 'continue-graph'
      | 'continue-settling'
      | 'restart';
  }
>;
