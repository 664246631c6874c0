import type { Stimulus } from '../messages/stimulus.ts';
import type { ClusterState } from '../state/cluster.ts';
import type { WorkerState } from '../state/task.ts';
import {
  offerAll,
  offerRefused,
  offerRuled,
  refillFromQueue,
  resumeRuns,
  startLimited,
} from './fill-slots.ts';
import { showKnownTasks } from './graph-table.ts';
import { Insight } from './insight.ts';
import { checkIdleSaturated } from './occupancy.ts';
import {
  onClientDesiresKeys,
  onClientReleasesKeys,
  onHeartbeatClient,
  onRegisterClient,
  onRemoveClient,
  onReportKey,
  onRestart,
  onUpdateGraph,
  onRefuseGraph,
} from './on-client.ts';
import {
  onAddKeys,
  onMoveReplicas,
  onReleaseWorkerData,
  onRequestRefreshWhoHas,
  onUpdateData,
  onWantReplicas,
} from './on-data.ts';
import {
  onCancelKeys,
  onReleaseTasks,
  onRetry,
  onSetPriority,
  onSetRestrictions,
  onSubmitAgain,
  redate,
} from './on-keys.ts';
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
import {
  isDeferredUntilRecovered,
  onBeginRecovery,
  onEndRecovery,
  onRestoreTasks,
} from './on-recovery.ts';
import {
  onLongRunning,
  onRunPaused,
  onRunResumes,
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
import { forgetPlacements, repair } from './repair.ts';
import { numberBehindAll } from './priorities.ts';
import { KernelScope } from './scope.ts';
import { restoreSnapshot, type StatePart, takeSnapshot } from './snapshot.ts';
import type { TransitionRecord } from '../api/insight.ts';
import { onContinue, settle, settleUnproven } from './transitions.ts';
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

  /** True when stimuli have left work to `continue`. */
  get isUnsettled(): boolean {
    return this.scope.agenda.length > 0 || this.scope.isRefillLeft;
  }

  /** The time at which `continue` is due at the latest, because a rate allows more then; undefined: at no time. */
  get wakeAtMs(): number | undefined {
    return this.scope.cluster.limits.wakeAtMs;
  }

  /** True while something that this client has said is not done. */
  isBusyFor(client: string): boolean {
    return this.scope.agenda.some((work) => work.client === client);
  }

  /** True when nothing is under way that a later stimulus continues: no long work, no recovery. */
  get isQuiet(): boolean {
    return !this.isUnsettled && this.scope.recovery === undefined;
  }

  /** All that later decisions depend on: see `takeSnapshot`. Only while it {@link isQuiet}. */
  snapshot(isToStart = false): Generator<StatePart, void, undefined> {
    return takeSnapshot(this.scope, isToStart);
  }

  /**
   * Before the first stimulus: from here on this kernel decides as the one whose state it is, if it was made for the time of
   * that state. Made later, it knows of rates that allow more since.
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
    scope.begin(stimulus, nowMs);
    if (scope.recovery === undefined || !isDeferredUntilRecovered(scope, stimulus)) {
      this.dispatch(stimulus);
    }
    scope.isHandled = true;
    this.finish();
    scope.end();
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
    scope.end();
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
    if (scope.ports.fairness.policy.revise !== undefined) redate(scope);
    const { limits } = scope.cluster;
    if (limits.wakeAtMs !== undefined) limits.passTime();
    if (limits.resumable.size > 0) resumeRuns(scope);
    if (limits.open.size > 0) startLimited(scope);
    // Downstream tasks of this stimulus are placed by now, so queued tasks come after them.
    if (scope.cluster.queued.size > 0) refillFromQueue(scope);
    if (scope.refused.size > 0) offerRefused(scope);
    if (scope.ruled.size > 0) offerRuled(scope);
    const { running, noWorkersSinceMs } = scope.cluster;
    if (running.size === 0 || noWorkersSinceMs !== undefined) refreshNoWorkersClock(scope);
  }

  /** Puts other policies and hooks into place. Between two stimuli only. O(workers + tasks). */
  replacePorts(ports: KernelPorts): void {
    const { scope } = this;
    const before = scope.ports;
    scope.ports = ports;
    scope.takeRules();
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

  /** The newest transitions of these keys, or because of these stimuli; the oldest comes first. */
  story(...keysOrStimuli: string[]): TransitionRecord[] {
    return keysOrStimuli.length === 0
      ? this.scope.story.all()
      : this.scope.story.about(keysOrStimuli);
  }

  private dispatch(stimulus: Stimulus): void {
    const handlers = HANDLERS as Readonly<Record<string, Handler>>;
    const handle = handlers[stimulus.op] as Handler;
    handle(this.scope, stimulus as never);
  }
}

type Handler = (scope: KernelScope, stimulus: never) => void;

/** The function that handles each stimulus. */
const HANDLERS: {
  readonly [S in Stimulus as S['op']]: (scope: KernelScope, stimulus: S) => void;
} = {
  'task-finished': onTaskFinished,
  'task-erred': onTaskErred,
  reschedule: onReschedule,
  'long-running': onLongRunning,
  'run-paused': onRunPaused,
  'run-resumes': onRunResumes,
  'runs-over': onRunsOver,
  'steal-response': onStealResponse,
  'add-keys': onAddKeys,
  'request-refresh-who-has': onRequestRefreshWhoHas,
  'release-worker-data': onReleaseWorkerData,
  'worker-status-change': onStatusChange,
  'log-event': ({ outbox }, { topics, message }) => {
    for (const topic of topics) outbox.event(topic, message);
  },
  'keep-alive': () => undefined,
  'register-worker': onRegisterWorker,
  'heartbeat-worker': onHeartbeat,
  'remove-worker': onRemoveWorker,
  'workers-lost': onWorkersLost,
  'register-client': onRegisterClient,
  'remove-client': onRemoveClient,
  'heartbeat-client': onHeartbeatClient,
  'update-graph': onUpdateGraph,
  'client-desires-keys': onClientDesiresKeys,
  'client-releases-keys': onClientReleasesKeys,
  'cancel-keys': onCancelKeys,
  retry: onRetry,
  'set-priority': onSetPriority,
  'submit-again': onSubmitAgain,
  'update-data': onUpdateData,
  'report-key': onReportKey,
  'move-replicas': onMoveReplicas,
  'want-replicas': onWantReplicas,
  'set-worker-status': onSetWorkerStatus,
  'steal-tasks': onStealTasks,
  'set-restrictions': onSetRestrictions,
  'release-tasks': onReleaseTasks,
  'refuse-graph': onRefuseGraph,
  'policies-replaced': (scope: KernelScope) => {
    numberBehindAll(scope);
    offerAll(scope);
  },
  'scheduler-stalled': onSchedulerStalled,
  'check-worker-ttl': onCheckWorkerTtl,
  'check-no-workers-timeout': onCheckNoWorkersTimeout,
  'recall-prefixes': ({ cluster }, { prefixes }) => cluster.recall(prefixes),
  continue: onContinue,
  'forget-placements': forgetPlacements,
  'begin-recovery': onBeginRecovery,
  'end-recovery': onEndRecovery,
  'restore-tasks': onRestoreTasks,
  restart: onRestart,
};
