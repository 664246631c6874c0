import type { Clock, Timer } from '../api/clock.ts';
import { messageOf, RemoteError, toErrorPayload, YardmasterError } from '../api/errors.ts';
import {
  type AbortRun,
  type DataStore,
  type ExecutionResult,
  type ExecutableTask,
  type Executor,
  RunAborted,
  type TaskSlot,
} from '../api/executor.ts';
import type { ErrorPayload } from '../messages/protocol.ts';
import { fetchData } from '../shared/fetch-data.ts';
import { type Logger } from '../api/plugin.ts';
import { checkedResult, executorName, thrownResult } from '../plugin-host/contracts.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { CLOCK, LOGGER } from '../host/tokens.ts';
import type { ActionTiming } from '../state/groups.ts';
import type { MeasuredTransfers, WorkerIdentity, WorkerMetrics } from '../state/worker.ts';
import type { AbortExecution, Execute, Gather, LimitTime, WorkerEvent } from '../worker/events.ts';
import { localFailure, toTaskFailure } from '../worker/transitions.ts';
import { compact, IncomingResults, PeerChannels } from './peer-channels.ts';
import { EXECUTOR, WORKER_IDENTITY } from './tokens.ts';
import { WorkerInbox } from './worker-inbox.ts';
import { WorkerLink } from './worker-link.ts';
import { WorkerMemory } from './worker-memory.ts';
import { MEASURED_BYTES_MIN } from '../shared/limits.ts';
import { inBackground } from '../shared/timers.ts';
import { show } from '../shared/words.ts';
import { SteadyMap } from '../util/collections.ts';
import { sharedMemoryOf, valueBytes } from '../util/bytes.ts';

/** After which a busy peer is asked again. */
const RETRY_BUSY_MS = 150;

/** Milliseconds for the code of a task to end after its time is over and its failure was reported. */
const TIMEOUT_GRACE_MS = 500;

/** A peer that sends nothing for this long counts as gone. If it is not, it is asked again. */
const ANSWER_TIMEOUT_MS = 60_000;

/** Sources and types of transfers that a heartbeat tells. */
const TRANSFERS_MAX = 100;

/** Modules of another version that the log tells of. */
const OTHER_VERSIONS_MAX = 100;

/** Sums over transfers of one source or type, or all. */
interface Transfers {
  readonly of: Omit<MeasuredTransfers, 'bandwidth'>;
  nbytes: number;
  seconds: number;
}

const NOT_BEGUN: AbortRun = () => undefined;
/** Never written to: most runs keep their place. */
const NO_REJOINS: (() => void)[] = [];

/** A run that has not ended, and its slot. */
class Run implements TaskSlot {
  abort: AbortRun = NOT_BEGUN;
  /** Called when it has a thread again. */
  rejoins: (() => void)[] = NO_REJOINS;
  /** Called when it may go on after a pause. */
  onResumed: (() => void) | undefined = undefined;
  /** The reason why it was stopped: that is its failure, however it ends. */
  stoppedBy: YardmasterError | undefined = undefined;
  /** Stops it when it takes too long. */
  timeout: Timer | undefined = undefined;
  /** Milliseconds that it may take; undefined: as long as it likes. */
  timeLimitMs: number | undefined = undefined;
  /** Its time is over, and its failure has been reported. */
  isOverdue = false;
  /** Resolves when it begins; undefined: it has begun. */
  begun: Promise<void> | undefined = undefined;

  constructor(
    readonly key: string,
    readonly runId: number,
    public startedMs: number,
    private readonly places: Places,
  ) {}

  delay(begun: Promise<void>): void {
    this.places.delay(this, begun);
  }

  secede(): void {
    this.places.secede(this);
  }

  rejoin(): Promise<void> {
    return new Promise((resolve) => {
      this.rejoins = [...this.rejoins, resolve];
      this.places.rejoin(this);
    });
  }

  pause(): void {
    this.places.pause(this);
  }

  resume(): Promise<void> {
    return new Promise((resolve) => {
      this.onResumed = resolve;
      this.places.resume(this);
    });
  }
}

/** The owner of the places of runs. */
interface Places {
  delay(run: Run, begun: Promise<void>): void;
  secede(run: Run): void;
  rejoin(run: Run): void;
  pause(run: Run): void;
  resume(run: Run): void;
}

const NO_INPUTS: ReadonlyMap<string, Uint8Array> = new Map();

/** The activities that the worker function has asked for and that take time: runs, transfers, waiting. */
@collaborator
export class WorkerActivities {
  private readonly runs = new SteadyMap<string, Run>();
  private readonly timers = new Set<Timer>();
  /** Keys of the actors that live, or are being made, here. */
  private readonly actors = new Set<string>();
  /** Large transfers since the last heartbeat: all, and those of one source or type. */
  private readonly transfers = new Map<string, Transfers>();
  private readonly places: Places = {
    delay: (run, begun) => this.delay(run, begun),
    secede: (run) => this.secede(run),
    rejoin: (run) => this.rejoin(run),
    pause: ({ key }) => {
      this.feed({ op: 'execute-pause', key, stimulusId: this.link.nameEvent('pause') });
    },
    resume: ({ key }) => {
      this.feed({ op: 'execute-resume', key, stimulusId: this.link.nameEvent('resume') });
    },
  };
  /** Versions of modules that tasks asked for and that are not here. */
  private readonly otherVersions = new Set<string>();
  private isClosed = false;

  private readonly address: string;
  private readonly store: DataStore;

  constructor(
    @inject(WORKER_IDENTITY) { address }: WorkerIdentity,
    @inject(EXECUTOR) private readonly executor: Executor,
    private readonly memory: WorkerMemory,
    private readonly peers: PeerChannels,
    private readonly inbox: WorkerInbox,
    private readonly link: WorkerLink,
    @inject(CLOCK) private readonly clock: Clock,
    @inject(LOGGER) private readonly log: Logger,
  ) {
    this.address = address;
    this.store = memory.store;
  }

  /** Seconds for which each key has been running. */
  executing(): [key: string, seconds: number][] {
    const nowMs = this.clock.nowMs();
    return Array.from(this.runs, ([key, { startedMs }]) => [key, (nowMs - startedMs) / 1000]);
  }

  /** Bytes per second of the large transfers since the last call, if there were any. */
  takeTransfers(): Pick<WorkerMetrics, 'bandwidth' | 'transfers'> {
    const sums = Array.from(this.transfers.values(), ({ of, nbytes, seconds }) => {
      return { ...of, bandwidth: nbytes / seconds };
    });
    this.transfers.clear();
    const [all, ...transfers] = sums;
    return all === undefined ? {} : { ...all, transfers };
  }

  execute(instruction: Execute): void {
    const { clock, address } = this;
    const { key, runId, runSpec, dependencies, isShort, isConcurrent, isRepeated, actor } =
      instruction;
    const inputs = this.inputs(dependencies);
    if (inputs === undefined) {
      // The store has said which; the scheduler has that computed again, and then this.
      this.feed({ op: 'execute-reschedule', key, stimulusId: this.link.nameEvent('input-lost') });
      return;
    }
    const run = new Run(key, runId, clock.nowMs(), this.places);
    this.runs.set(key, run);
    if (actor === true) this.actors.add(key);
    const task =
      actor === true
        ? { key, runSpec, inputs, isShort, actorAt: address }
        : {
            key,
            runSpec,
            inputs,
            isShort,
            ...(isConcurrent === true ? { isConcurrent } : {}),
            ...(isRepeated === true ? { isRepeated } : {}),
          };
    run.abort = this.begin(task, run);
    const timeLimitMs = instruction.annotations?.['timeoutMs'];
    if (typeof timeLimitMs === 'number') this.limitTime({ key, timeLimitMs });
  }

  /**
   * Fails the run when it takes longer than that, at that time, whatever its code does. The executor ends the code behind
   * it.
   */
  limitTime({ key, timeLimitMs: timeoutMs }: Omit<LimitTime, 'kind'>): void {
    const run = this.runs.get(key);
    if (run === undefined) return;
    run.timeout?.cancel();
    run.timeLimitMs = timeoutMs;
    if (!(timeoutMs > 0) || timeoutMs === Infinity || run.begun !== undefined) return;
    const leftMs = run.startedMs + timeoutMs - this.clock.nowMs();
    run.timeout = this.clock.setTimer(Math.max(0, leftMs), () => {
      const message = `"${key}" was stopped: it ran for longer than ${timeoutMs} ms, as its timeoutMs says`;
      run.stoppedBy ??= new YardmasterError('ERR_TASK_TIMEOUT', message, { key, timeoutMs });
      run.abort(new RunAborted(TIMEOUT_GRACE_MS, true));
      run.isOverdue = this.runs.get(key) === run;
      this.onRunEnd(run, { kind: 'failure', error: toErrorPayload(run.stoppedBy) });
    });
  }

  private delay(run: Run, begun: Promise<void>): void {
    run.begun = begun;
    run.timeout?.cancel();
    const beginning = begun.then(() => {
      if (run.begun !== begun || this.runs.get(run.key) !== run) return;
      run.begun = undefined;
      run.startedMs = this.clock.nowMs();
      const { key, timeLimitMs } = run;
      if (timeLimitMs !== undefined) this.limitTime({ key, timeLimitMs });
    });
    inBackground(beginning, 'a run could not begin');
  }

  private begin(task: ExecutableTask, run: Run): AbortRun {
    const { executor, log } = this;
    const what = `the task "${task.key}"`;
    let hasEnded = false;
    const onEnd = (result: ExecutionResult): void => {
      if (hasEnded) {
        log.warn({}, `${executorName(executor)} ended ${what} twice: call onEnd once`);
        return;
      }
      hasEnded = true;
      this.onRunEnd(run, checkedResult(executor, result, what, log));
    };
    const onThrown = (thrown: unknown): void => {
      onEnd(thrownResult(executor, thrown, what, log));
    };
    const controller = new AbortController();
    try {
      if (executor.begin !== undefined) {
        const abort: unknown = executor.begin(task, run, onEnd);
        if (typeof abort === 'function') return abort as AbortRun;
        const why = `${show(abort)} instead of a function that aborts it`;
        log.warn({}, `${executorName(executor)} answered begin of ${what} with ${why}`);
        return NOT_BEGUN;
      }
      // One that is no promise is an answer, too: that it is none says the check.
      Promise.resolve(executor.run(task, controller.signal, run)).then(onEnd, onThrown);
    } catch (thrown) {
      onThrown(thrown);
    }
    return (reason) => controller.abort(reason);
  }

  /** Undefined when one of them is lost. */
  private inputs(dependencies: readonly string[]): ReadonlyMap<string, Uint8Array> | undefined {
    if (dependencies.length === 0) return NO_INPUTS;
    const { store } = this;
    const inputs = new Map<string, Uint8Array>();
    for (const dependency of dependencies) {
      const value = store.get(dependency);
      if (value === undefined) return undefined;
      inputs.set(dependency, value);
    }
    return inputs;
  }

  /** A result is dropped; if it is that of an actor, the actor goes too. */
  dropData(key: string): void {
    this.memory.drop(key);
    if (this.actors.delete(key)) this.executor.releaseActor?.(key);
  }

  abortExecution({ key, killTimeoutMs }: AbortExecution): void {
    const run = this.runs.get(key);
    if (killTimeoutMs === undefined) run?.abort();
    else run?.abort(new RunAborted(killTimeoutMs));
  }

  /**
   * Stops the run that uses the memory: the only run, if results are the smaller part of the
   * memory.
   *
   * @param error - the error with which the worker would otherwise close
   * @returns false when it is not certain which run it is, or when that run was stopped before
   */
  stopMemoryHog({ data }: YardmasterError): boolean {
    const [only, ...others] = this.runs;
    if (only === undefined || others.length > 0 || this.actors.size > 0) return false;
    const [key, run] = only;
    const { processBytes = 0, managedBytes = 0, limitBytes = 0 } = data as Record<string, number>;
    if (run.stoppedBy !== undefined || 2 * managedBytes > processBytes) return false;
    run.stoppedBy = new YardmasterError(
      'ERR_OUT_OF_MEMORY',
      `"${key}" was stopped: while it was the only task that ran on ${this.address}, this worker came to occupy ${processBytes} of ${limitBytes} bytes, and collecting garbage did not help; split the task, or give workers a higher memory limit`,
      { ...data, key },
    );
    this.log.error({ err: run.stoppedBy, ...data, key }, 'a task is stopped');
    run.abort(new RunAborted(0));
    return true;
  }

  rejoined(key: string): void {
    const run = this.runs.get(key);
    if (run === undefined) return;
    const { rejoins } = run;
    run.rejoins = NO_REJOINS;
    for (const resolve of rejoins) resolve();
  }

  resumed(key: string): void {
    this.runs.get(key)?.onResumed?.();
  }

  gather({ worker, keys }: Gather): void {
    this.fetch(worker, keys).then(
      (event) => this.feed(event),
      (error: unknown) => {
        if (this.isClosed) return;
        this.log.warn({ err: error, peer: worker, keys }, 'a transfer failed');
        // A late answer would have no receiver, and the peer shall not keep the results for this worker.
        if (!(error instanceof RemoteError)) this.peers.drop(worker, 'a transfer failed');
        this.feed(this.transferFailure(worker, error));
      },
    );
  }

  /** A peer that answers with an error would do so again; one that does not answer is gone. */
  private transferFailure(worker: string, error: unknown): WorkerEvent {
    if (!(error instanceof RemoteError)) {
      const stimulusId = this.link.nameEvent('gather-network-failure');
      return { op: 'gather-network-failure', worker, reason: messageOf(error), stimulusId };
    }
    const failure = toTaskFailure(toErrorPayload(error));
    return {
      op: 'gather-failure',
      worker,
      failure,
      stimulusId: this.link.nameEvent('gather-failure'),
    };
  }

  retryBusyLater(worker: string): void {
    const timer = this.clock.setTimer(RETRY_BUSY_MS, () => {
      this.timers.delete(timer);
      const stimulusId = this.link.nameEvent('retry-busy-worker');
      this.feed({ op: 'retry-busy-worker', worker, stimulusId });
    });
    this.timers.add(timer);
  }

  /** Aborts all runs; no outcome is fed any more. */
  close(): void {
    this.isClosed = true;
    for (const timer of this.timers) timer.cancel();
    for (const { abort, timeout } of [...this.runs.values()]) {
      timeout?.cancel();
      abort();
    }
  }

  private secede({ key, startedMs }: Run): void {
    const computeDurationS = (this.clock.nowMs() - startedMs) / 1000;
    this.feed({
      op: 'execute-secede',
      key,
      computeDurationS,
      stimulusId: this.link.nameEvent('secede'),
    });
  }

  private rejoin({ key }: Run): void {
    this.feed({ op: 'execute-rejoin', key, stimulusId: this.link.nameEvent('rejoin') });
  }

  private feed(event: WorkerEvent): void {
    if (!this.isClosed) this.inbox.feed(event);
  }

  private onRunEnd(run: Run, result: ExecutionResult): void {
    const { key, stoppedBy } = run;
    run.timeout?.cancel();
    if (this.runs.get(key) !== run) {
      // It was given up before, and has been reported.
      if (run.isOverdue && !this.isClosed) this.inbox.feedSoon(this.runOver(run));
      return;
    }
    this.runs.delete(key);
    if (this.isClosed) return;
    const error = stoppedBy === undefined ? undefined : toErrorPayload(stoppedBy);
    const end: ExecutionResult = error === undefined ? result : { kind: 'failure', error };
    this.inbox.feedSoon(this.runEnd(run, end));
  }

  private runOver({ runId }: Run): WorkerEvent {
    return { op: 'execute-over', runId, stimulusId: this.link.nameEvent('execute-over') };
  }

  /** Once for each: all tasks of a program fail alike. */
  private warnOtherVersion(key: string, error: ErrorPayload): void {
    const { module, expected } = error.data ?? {};
    const version = `${String(module)} ${String(expected)}`;
    if (this.otherVersions.has(version) || this.otherVersions.size >= OTHER_VERSIONS_MAX) return;
    this.otherVersions.add(version);
    const err = new RemoteError(error);
    this.log.warn({ err, key }, 'this worker has another version of a module, so tasks fail');
  }

  private runEnd(run: Run, result: ExecutionResult): WorkerEvent {
    const { key, startedMs } = run;
    if (result.kind === 'reschedule') {
      return { op: 'execute-reschedule', key, stimulusId: this.link.nameEvent('reschedule') };
    }
    if (result.kind === 'returned') {
      return { op: 'execute-returned', key, stimulusId: this.link.nameEvent('returned') };
    }
    if (result.kind === 'failure') {
      this.actors.delete(key); // There is none.
      if (result.error.code === 'ERR_FUNCTION_VERSION') this.warnOtherVersion(key, result.error);
      const failure = toTaskFailure(result.error);
      const stimulusId = this.link.nameEvent('task-erred');
      const timings = [this.timing('compute', startedMs)];
      const overdue = run.isOverdue ? { overdueRun: run.runId } : undefined;
      return { op: 'execute-failure', key, failure, timings, ...overdue, stimulusId };
    }
    try {
      this.store.set(key, result.value);
    } catch (thrown) {
      this.dropData(key);
      const failure = toTaskFailure(toErrorPayload(notStored(key, thrown)));
      return { op: 'execute-failure', key, failure, stimulusId: this.link.nameEvent('task-erred') };
    }
    const offsetMs = this.link.clockOffsetMs;
    const startS = (result.startMs + offsetMs) / 1000;
    const stopS = (result.stopMs + offsetMs) / 1000;
    return {
      op: 'execute-success',
      key,
      nbytes: valueBytes(result.value),
      type: result.type,
      timings: [{ action: 'compute', startS, stopS }],
      ...(sharedMemoryOf(result.value) === undefined ? { value: result.value } : {}), // Else it may still change.
      stimulusId: this.link.nameEvent('task-finished'),
    };
  }

  /** Of an action that ends now, in the scheduler's clock. */
  private timing(action: string, startMs: number): ActionTiming {
    const offsetMs = this.link.clockOffsetMs;
    const stopS = (this.clock.nowMs() + offsetMs) / 1000;
    return { action, startS: (startMs + offsetMs) / 1000, stopS };
  }

  private async fetch(worker: string, keys: readonly string[]): Promise<WorkerEvent> {
    const { peers, clock, store, memory } = this;
    const channel = await peers.to(worker);
    const startMs = clock.nowMs();
    const arrivals = new IncomingResults(store);
    const options = {
      mayBeBusy: true,
      byReference: true,
      timeoutMs: ANSWER_TIMEOUT_MS,
      allocate: (_: string, nbytes: number) => arrivals.expect(nbytes),
      onGarbage: (nbytes: number) => memory.noteGarbage(nbytes),
    };
    const { isBusy, values, runIds, type } = await fetchData(channel, keys, options).finally(() =>
      arrivals.end(),
    );
    if (isBusy)
      return { op: 'gather-busy', worker, stimulusId: this.link.nameEvent('gather-busy') };
    this.measureTransfer(worker, type, values, clock.nowMs() - startMs);
    if (this.isClosed) throw new YardmasterError('ERR_CLOSED', 'this worker closes');
    const event = this.storeReceived(worker, values, this.timing('transfer', startMs));
    if (event.op !== 'gather-success') return event;
    return { ...event, runIds: event.keys.map((key) => runIds.get(key) ?? -1) };
  }

  /** A transfer of few bytes says how long a message takes, and not what the link can carry. */
  private measureTransfer(
    from: string,
    type: string | undefined,
    values: ReadonlyMap<string, Uint8Array>,
    ms: number,
  ): void {
    let nbytes = 0;
    for (const value of values.values()) nbytes += value.byteLength;
    this.memory.moved.received += nbytes;
    if (nbytes < MEASURED_BYTES_MIN || ms <= 0) return;
    const { transfers } = this;
    for (const of of [{}, { from }, ...(type === undefined ? [] : [{ type }])]) {
      const name = Object.entries(of).join();
      const sum = transfers.get(name) ?? { of, nbytes: 0, seconds: 0 };
      sum.nbytes += nbytes;
      sum.seconds += ms / 1000;
      if (transfers.size < TRANSFERS_MAX) transfers.set(name, sum);
    }
  }

  private storeReceived(
    worker: string,
    received: ReadonlyMap<string, Uint8Array>,
    timing: ActionTiming,
  ): WorkerEvent {
    const { store } = this;
    const stored: string[] = [];
    const nbytes: number[] = [];
    try {
      for (const [key, value] of received) {
        const bytes = compact(value);
        store.set(key, bytes);
        stored.push(key);
        nbytes.push(valueBytes(bytes));
      }
    } catch (thrown) {
      for (const key of stored) store.delete(key);
      const { message } = notStored(`what ${worker} sent`, thrown);
      const failure = localFailure('ERR_TASK', message);
      return {
        op: 'gather-failure',
        worker,
        failure,
        stimulusId: this.link.nameEvent('gather-failure'),
      };
    }
    const stimulusId = this.link.nameEvent('gather-success');
    return { op: 'gather-success', worker, keys: stored, nbytes, timing, stimulusId };
  }
}

function notStored(what: string, cause: unknown): YardmasterError {
  const reason = messageOf(cause);
  return new YardmasterError('ERR_TASK', `${what} could not be stored: ${reason}`, {}, { cause });
}
