import { YardmasterError } from '../api/errors.ts';
import {
  nextToExecute,
  nextTransfer,
  WORKER_TRANSITIONS,
  type WorkerTableRow,
} from './transitions.ts';
import type { Instruction, WorkerEvent } from './events.ts';
import * as activity from './on-activity.ts';
import * as scheduler from './on-scheduler.ts';
import { validateWorker } from './validate.ts';
import { type WorkerKernelSettings, workerKernelOptions } from './worker-options.ts';
import { WorkerScope } from './worker-scope.ts';
import { WorkerStory, type WorkerTransitionRecord } from './worker-story.ts';
import { WorkerTables } from './worker-tables.ts';
import type { WorkerTarget, WorkerTask, WorkerTaskStateName } from './worker-task.ts';

type Handler = (scope: WorkerScope, event: never) => void;

/** The function that handles each event. */
const HANDLERS: {
  readonly [E in WorkerEvent as E['op']]: (scope: WorkerScope, event: E) => void;
} = {
  'compute-task': scheduler.onComputeTask,
  'free-keys': scheduler.onFreeKeys,
  'steal-request': scheduler.onStealRequest,
  'set-priority': scheduler.onSetPriorities,
  'extend-time-limits': scheduler.onExtendTimeLimits,
  'resume-run': scheduler.onResumeRun,
  'acquire-replicas': scheduler.onAcquireReplicas,
  'remove-replicas': scheduler.onRemoveReplicas,
  'refresh-who-has': scheduler.onRefreshWhoHas,
  'remove-worker': scheduler.onPeerRemoved,
  'scheduler-lost': (scope, { keepsRuns = false }) => scheduler.onSchedulerLost(scope, keepsRuns),
  'execute-success': activity.onExecuteSuccess,
  'execute-failure': activity.onExecuteFailure,
  'execute-over': activity.onExecuteOver,
  'execute-reschedule': activity.onExecuteReschedule,
  'execute-returned': activity.onExecuteReturned,
  'execute-secede': activity.onExecuteSecede,
  'execute-rejoin': activity.onExecuteRejoin,
  'execute-pause': activity.onExecutePause,
  'execute-resume': activity.onExecuteResume,
  'gather-success': activity.onGatherSuccess,
  'gather-busy': activity.onGatherBusy,
  'gather-network-failure': activity.onGatherNetworkFailure,
  'gather-failure': activity.onGatherFailure,
  'find-missing': activity.onFindMissing,
  'retry-busy-worker': activity.onRetryBusyWorker,
  'update-data': activity.onStoreData,
  'memory-measured': activity.onMemoryMeasured,
  'data-lost': activity.onDataLost,
  pause: ({ tables }) => (tables.pace = 'paused'),
  unpause: ({ tables }) => (tables.pace = 'running'),
  crawl: ({ tables }) => (tables.pace = 'crawling'),
};

const TABLE: Readonly<Record<WorkerTaskStateName, WorkerTableRow>> = WORKER_TRANSITIONS;

/**
 * The state machine of a worker decides what to run, fetch, drop and report. It is a function of
 * its state, the event and the time, without I/O. Its host carries out the instructions and returns
 * their outcome as events.
 *
 * Not re-entrant. An exception means that the machine is broken: close the worker.
 */
export class WorkerKernel {
  /** Read it; only the machine writes it. */
  readonly tables: WorkerTables;
  private readonly scope: WorkerScope;
  private readonly log: WorkerStory;
  /** Called after each step; must not throw, nor call the machine. */
  observer:
    | ((
        key: string,
        start: WorkerTaskStateName,
        finish: WorkerTaskStateName,
        stimulusId: string,
      ) => void)
    | undefined;
  private transitionCount = 0;
  private nowMs = 0;

  constructor(settings: WorkerKernelSettings) {
    this.tables = new WorkerTables(workerKernelOptions(settings));
    this.scope = new WorkerScope(this.tables);
    this.log = new WorkerStory(this.tables.options.transitionLogLength);
  }

  /**
   * Applies one event completely.
   * @throws YardmasterError `ERR_TRANSITION` and `ERR_INVARIANT`, with the story of the task
   */
  handle(event: WorkerEvent, nowMs: number): readonly Instruction[] {
    return this.handleAll([event], nowMs);
  }

  /** Applies several events before it begins runs and transfers, which are chosen better so. */
  handleAll(events: readonly WorkerEvent[], nowMs: number): readonly Instruction[] {
    this.nowMs = nowMs;
    this.tables.batchCount++;
    for (const event of events) {
      this.scope.begin(event.stimulusId);
      this.dispatch(event);
      this.drain();
      this.scope.reportCopies();
    }
    this.beginRuns();
    this.beginTransfers();
    if (this.tables.options.validate) this.validate();
    return this.scope.takeInstructions();
  }

  /** Transitions of these tasks and stimuli, oldest first; all that are kept when none is named. */
  story(...keysOrStimuli: string[]): WorkerTransitionRecord[] {
    return this.log.query(keysOrStimuli);
  }

  private dispatch(event: WorkerEvent): void {
    const handlers = HANDLERS as Readonly<Record<string, Handler>>;
    const handle = handlers[event.op] as Handler;
    handle(this.scope, event as never);
  }

  private drain(): void {
    const { pending } = this.scope;
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      this.transition(next.task, next.target);
    }
  }

  private beginRuns(): void {
    const { tables } = this;
    if (tables.rejoining.size > 0) activity.rejoinWaiting(this.scope);
    for (let task = nextToExecute(tables); task !== undefined; task = nextToExecute(tables)) {
      this.transition(task, 'executing');
    }
  }

  private beginTransfers(): void {
    const { tables, scope } = this;
    for (let next = nextTransfer(tables); next !== undefined; next = nextTransfer(tables)) {
      const { peer, transfer } = next;
      peer.transfer = transfer;
      tables.transferCount++;
      tables.incomingBytes += transfer.nbytes;
      for (const task of transfer.tasks) {
        task.comingFrom = peer.address;
        this.transition(task, 'flight');
      }
      const keys = transfer.tasks.map((task) => task.key);
      scope.emit({ kind: 'gather', worker: peer.address, keys, nbytes: transfer.nbytes });
    }
  }

  private transition(task: WorkerTask, target: WorkerTarget): void {
    const start = task.state;
    if (start === target) return;
    // A dependent has appeared since this was recommended.
    if (target === 'forgotten' && start !== 'released') return;
    if (++this.transitionCount > this.tables.options.transitionCounterMax) {
      throw this.broken(task, `made too many transitions; the last was to ${target}`);
    }
    const apply = TABLE[start][target];
    if (apply !== undefined) {
      apply(this.scope, task);
      this.record(task, start, target);
    } else if (start === 'released' || target === 'released') {
      throw this.broken(task, `cannot go from ${start} to ${target}`);
    } else {
      this.transitionViaReleased(task, target);
    }
  }

  private transitionViaReleased(task: WorkerTask, target: WorkerTarget): void {
    this.transition(task, 'released');
    // What was recommended on the way is overtaken, above all to forget the task.
    this.scope.pending.take(task);
    if (task.state !== 'released' && TABLE[task.state][target] === undefined) {
      throw this.broken(task, `cannot continue from ${task.state} to ${target}`);
    }
    this.transition(task, target);
  }

  private record(task: WorkerTask, start: WorkerTaskStateName, target: WorkerTarget): void {
    const { stimulusId } = this.scope;
    this.log.add(task.key, start, target, task.state, stimulusId, this.nowMs);
    this.observer?.(task.key, start, task.state, stimulusId);
  }

  private validate(): void {
    const broken = validateWorker(this.tables);
    if (broken === undefined) return;
    const story = broken.key === undefined ? this.story() : this.story(broken.key);
    throw new YardmasterError(
      'ERR_INVARIANT',
      `the worker's state is inconsistent after "${this.scope.stimulusId}": ${broken.message}`,
      { key: broken.key, story },
    );
  }

  private broken(task: WorkerTask, message: string): YardmasterError {
    return new YardmasterError('ERR_TRANSITION', `${task.toString()} ${message}. This is a bug.`, {
      key: task.key,
      story: this.story(task.key),
    });
  }
}
