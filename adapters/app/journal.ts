import {
  type Clock,
  every,
  type Logger,
  type TaskView,
  type Timer,
  type WorkerView,
  YardmasterError,
} from '../../core/api/index.ts';
import { byFactory, byValue, type Provider, type Services } from '../../core/api/token.ts';
import { SchedulerKernel } from '../../core/kernel/kernel.ts';
import { actorOf, failureOf, isData } from '../../core/kernel/on-recovery.ts';
import type { LogHeader } from '../../core/log/format.ts';
import { checkpointOf, restoreCheckpoint } from '../../core/log/recording-kernel.ts';
import {
  journalledForm,
  keysOf,
  OPERATIONS,
  reportNumberOf,
} from '../../core/messages/operations.ts';
import type { RestoreTasks, Stimulus } from '../../core/messages/stimulus.ts';
import { CLOCK, SERVER_ID } from '../../core/host/tokens.ts';
import { JOURNAL, type SchedulerJournal } from '../../core/scheduler-host/journal.ts';
import { PortsCompiler } from '../../core/scheduler-host/kernel-ports.ts';
import { SessionSecret } from '../../core/scheduler-host/membership.ts';
import { ReconnectGrace } from '../../core/scheduler-host/reconnect-grace.ts';
import type { Scheduler } from '../../core/scheduler-host/scheduler.ts';
import { Sessions } from '../../core/scheduler-host/sessions.ts';
import { Shutdown } from '../../core/scheduler-host/shutdown.ts';
import { nameOfStimulus, StimulusQueue } from '../../core/scheduler-host/stimulus-queue.ts';
import { trust } from '../../core/shared/read-only.ts';
import { setAwakeTimer } from '../../core/shared/timers.ts';
import { Deferred } from '../../core/util/promises.ts';
import { FIRE_AND_FORGET } from '../../core/state/cluster.ts';
import type { TaskState, WorkerState } from '../../core/state/task.ts';
import { BEAT_MS, FolderLock, LEASE_MS } from '../log/folder-lock.ts';
import { type FileSystem, SYSTEM_FILES } from '../log/segment-file.ts';
import { asJournalError, type Contents, FatalEntries, JournalFolder } from './journal-folder.ts';
import { type Durability, headerOf, isUnserialisable, LogOutput } from './write-log.ts';

export interface JournalOptions {
  /** It is made if it does not exist. One scheduler at a time uses it. */
  readonly folder: string;
  /** Default `commit`. */
  readonly durability?: Durability;
  /** The reaction to a disk that is full or fails: `stop` the scheduler, or `continue` without a journal. Default `stop`. */
  readonly onJournalError?: 'stop' | 'continue';
  /** Milliseconds that a scheduler which starts again waits for the workers that it had. Default 30 000. */
  readonly workerWaitMs?: number;
  /** Bytes by which a segment grows before the next one is begun, at least. Default 64 MiB. */
  readonly segmentBytes?: number;
  /** The file system of its files. Default: that of this machine. */
  readonly files?: FileSystem;
}

/** Run ids that are taken in advance: an entry for each run would be one for each task. */
const RUN_IDS = 2 ** 20;

/** A segment is followed by another one when it has grown by so many times what it began with. */
const GROWTH = 3;
const SEGMENT_BYTES = 64 * 2 ** 20;

const WORKER_WAIT_MS = 30_000;

/** The methods of a scheduler that its journal uses. */
interface Host {
  readonly clock: Clock;
  readonly kernel: SchedulerKernel;
  readonly sessions: Sessions;
  readonly queue: StimulusQueue;
  readonly shutdown: Shutdown;
  readonly grace: ReconnectGrace;
  readonly ports: PortsCompiler;
}

/**
 * The journal of one scheduler. An entry is in the hands of the operating system before what follows from it is
 * sent, so nothing ever leaves the process that a restart would not know.
 */
export class Journal implements SchedulerJournal {
  readonly providers: readonly Provider[];
  private readonly read = new Deferred();
  /** Until what the folder holds has been read. */
  reading: Promise<void> | undefined = this.read.promise;
  private host!: Host;
  private header!: Omit<LogHeader, 'segment'>;
  /** Undefined while what the folder holds is read, and when there is no journal any more. */
  private output: LogOutput | undefined;
  private hasFailed = false;
  private failure: Error | undefined;
  /** Of the secrets with which workers, by address, and clients may come back. */
  private readonly secretHashes = new Map<string, string>();
  /** Numbers of the last reports of clients that are written. */
  private readonly committed = new Map<string, number>();
  private readonly fatal: FatalEntries;
  /** The place of the entry that is being read. */
  private readingAt: number | undefined;
  private runIdsEnd = 0;
  /** Shows that this scheduler has the folder. */
  private beats: Timer | undefined;
  private beatMs = 0;
  /** Ends the wait for workers. */
  private waiting: Timer | undefined;
  /** The actions of the kernel since `before` that cannot be learnt from what it was handed. */
  private pending: Stimulus[] = [];
  private failures: NonNullable<RestoreTasks['failures']>[number][] = [];
  private actors: NonNullable<RestoreTasks['actors']>[number][] = [];
  private lostData: string[] = [];

  private constructor(
    private readonly options: JournalOptions,
    private readonly folder: JournalFolder,
    private contents: Contents,
    private readonly log: Logger,
  ) {
    this.fatal = new FatalEntries(options.folder, contents.next, options.files);
    const { schedulerId } = contents;
    this.providers = [
      byFactory(JOURNAL, (services) => this.attach(services)),
      ...(schedulerId === undefined ? [] : [byValue(SERVER_ID, schedulerId)]),
    ];
  }

  /**
   * Locks the folder, and reads what is in it. Waits for some seconds when the lock is of a process that cannot be seen.
   * @throws YardmasterError `ERR_JOURNAL`
   */
  static async open(options: JournalOptions, log: Logger, clock: Clock): Promise<Journal> {
    const stopped = await FolderLock.watch(options.folder, clock, options.files).catch(
      (error: unknown) => {
        // What is wrong with the folder itself is found when it is opened.
        if (YardmasterError.is(error, 'ERR_JOURNAL')) throw error;
        return undefined;
      },
    );
    const folder = JournalFolder.open(options.folder, options.files, stopped);
    if (stopped !== undefined) {
      log.warn(
        { journal: options.folder },
        `the lock of the journal ${options.folder} was taken over from a scheduler whose heartbeat has stopped`,
      );
    }
    try {
      const contents = folder.read();
      for (const note of contents.notes) log.warn({ journal: options.folder }, note);
      return new Journal(options, folder, contents, log);
    } catch (error) {
      folder.lock.release();
      throw error;
    }
  }

  get isOn(): boolean {
    return !this.hasFailed;
  }

  /** The plugin by which it learns what the kernel has done. */
  get observer(): object {
    return {
      name: 'journal',
      taskTransition: (task: TaskView, start: string, finish: string) => {
        if (start === 'memory') this.onLoss(task as unknown as TaskState);
        if (finish === 'erred' || finish === 'memory') this.onEnd(task as unknown as TaskState);
      },
      workerAdded: (worker: WorkerView) => {
        const { identity } = worker as unknown as WorkerState;
        const secretHash = this.secretHashes.get(identity.address);
        const secret = secretHash === undefined ? {} : { secretHash };
        const op = 'register-worker';
        this.note({ op, identity, status: 'paused', ...secret, stimulusId: 'journal' });
      },
      workerRemoved: ({ address: worker }: WorkerView) => {
        this.secretHashes.delete(worker);
        const op = 'remove-worker';
        this.note({ op, worker, expected: true, close: false, stimulusId: 'journal' });
      },
    };
  }

  /**
   * Brings the scheduler to where it was, and begins a segment with that; from then on everything is written.
   * @throws YardmasterError `ERR_JOURNAL`
   */
  async start(scheduler: Scheduler): Promise<void> {
    await scheduler.addPlugin(trust(this.observer));
    const { folder, host, contents } = this;
    const startMs = host.clock.nowMs();
    this.beatMs = startMs;
    this.beats = every(host.clock, BEAT_MS, () => void this.keepFolder());
    this.readAgain(contents);
    if (scheduler.crash !== undefined) throw scheduler.crash;
    this.begin();
    this.fatal.end();
    this.contents = { ...contents, entries: [] };
    this.reading = undefined;
    this.read.resolve();
    if (contents.schedulerId === undefined) return;
    const { tasks, workersByRank, clients } = host.kernel.cluster;
    const tookMs = Math.round(host.clock.nowMs() - startMs);
    this.log.info(
      { journal: folder.path, tasks: tasks.size, workers: workersByRank.length, tookMs },
      `the journal ${folder.path} was read: ${tasks.size} tasks, ${clients.size} clients; ${workersByRank.length} workers are awaited`,
    );
    this.awaitPeers();
  }

  private readAgain({ checkpoint, entries }: Contents): void {
    const { kernel, queue } = this.host;
    const { fatal } = this;
    const { found } = fatal;
    if (found !== undefined && found < entries.length)
      this.leaveOut(found, 'several starts, one after the other, have ended');
    fatal.begin();
    let nextRunId = checkpoint?.journal?.nextRunId ?? 0;
    if (checkpoint !== undefined) queue.put({ op: 'forget-placements' });
    for (const [place, entry] of entries.entries()) {
      if (entry.op === 'begin-recovery') {
        nextRunId = Math.max(nextRunId, entry.nextRunId);
        continue;
      }
      this.keepFolder(BEAT_MS);
      this.noteSecret(entry);
      this.readingAt = place;
      if (!fatal.has(place)) {
        fatal.beginEntry(place);
        queue.put(entry);
      }
      // Its client does not report it again, not even what is left out.
      this.noteReport(entry);
      // Keys that were given up may return with another meaning.
      while (kernel.isUnsettled && !queue.isStopped) queue.put({ op: 'continue' });
      if (queue.isStopped) return;
    }
    this.readingAt = undefined;
    fatal.endEntries();
    queue.put({ op: 'begin-recovery', nextRunId });
  }

  /**
   * True when the scheduler has ended because of an entry, at which every other one would end as well. Another scheduler
   * that starts with this journal leaves the entry out: what it asked for is lost, and the log says so.
   */
  leavesOut(error: unknown): boolean {
    const { readingAt: place } = this;
    this.readingAt = undefined;
    this.beats?.cancel();
    if (place === undefined || !YardmasterError.is(error, 'ERR_INVARIANT')) return false;
    this.secretHashes.clear();
    this.committed.clear();
    this.leaveOut(place, 'the scheduler ended', error);
    this.contents = this.folder.read();
    return true;
  }

  /** @param ended - for the log: `the scheduler ended` */
  private leaveOut(place: number, ended: string, err?: unknown): void {
    this.fatal.add(place);
    const { folder: journal } = this.options;
    const { text, fields } = nameOfStimulus(this.contents.entries[place] as Stimulus);
    this.log.error(
      { ...(err === undefined ? {} : { err }), journal, ...fields },
      `${ended} at ${text}, which its journal ${journal} holds. This is a bug; it starts again without it, and what was asked for there is lost`,
    );
  }

  /** Workers and clients come back by themselves; those that do not count as lost after some time. */
  private awaitPeers(): void {
    const { kernel, queue, grace, clock } = this.host;
    for (const client of [...kernel.cluster.clients.keys()]) {
      if (client === FIRE_AND_FORGET) continue;
      const secret = this.secretOf(client);
      grace.begin(client, Infinity, secret, () => queue.put({ op: 'remove-client', client }));
    }
    const { workerWaitMs = WORKER_WAIT_MS } = this.options;
    this.waiting = setAwakeTimer(clock, workerWaitMs, () => queue.put({ op: 'end-recovery' }));
  }

  before(stimulus: Stimulus): void {
    if (this.output === undefined) return;
    this.noteSecret(stimulus);
    const entry = journalledForm(stimulus, this.host.kernel.nextRunId);
    if (entry === undefined) return;
    this.write(entry);
    this.noteReport(stimulus);
  }

  /** Notes a failed stimulus: what the client wanted by it is not wanted after a restart either, where it may not fail. */
  failed(stimulus: Stimulus): void {
    if (this.output === undefined || !('client' in stimulus)) return;
    const keys = keysOf(stimulus);
    if (keys.length === 0 || !OPERATIONS[stimulus.op].failureEndsWants) return;
    const { client } = stimulus;
    this.pending.push({ op: 'client-releases-keys', client, keys, stimulusId: 'journal' });
  }

  after(): void {
    const { output } = this;
    if (output === undefined) return;
    const { kernel, queue } = this.host;
    if (this.failures.length + this.actors.length + this.lostData.length > 0) this.noteEnds();
    if (this.pending.length > 0) for (const entry of this.pending.splice(0)) this.write(entry);
    if (kernel.nextRunId > this.runIdsEnd - RUN_IDS / 2) this.takeRunIds();
    // A graph that is being taken in is in the journal, and not yet in the kernel.
    if (output.isCheckpointDue(kernel.cluster.tasks.size) && !kernel.isUnsettled) this.rotate();
    if (kernel.awaitedWorkers?.size === 0) {
      queue.put({ op: 'end-recovery' });
    }
  }

  isAwaited(address: string): boolean {
    const { cluster, awaitedWorkers } = this.host.kernel;
    const worker = cluster.workers.get(address);
    return worker !== undefined && awaitedWorkers?.has(worker) === true;
  }

  mayReturn(address: string, secret: string | undefined): boolean {
    return this.isAwaited(address) && this.secretOf(address)?.matches(secret) === true;
  }

  private secretOf(peer: string): SessionSecret | undefined {
    const hash = this.secretHashes.get(peer);
    return hash === undefined ? undefined : SessionSecret.ofHash(hash);
  }

  private noteSecret(stimulus: Stimulus): void {
    if (stimulus.op !== 'register-worker' && stimulus.op !== 'register-client') return;
    const { secretHash } = stimulus;
    const peer = stimulus.op === 'register-client' ? stimulus.client : stimulus.identity.address;
    if (secretHash === undefined) this.secretHashes.delete(peer);
    else this.secretHashes.set(peer, secretHash);
  }

  committedOf(client: string): number {
    return this.committed.get(client) ?? 0;
  }

  /** An entry that was read is handled again. */
  noteReport(stimulus: Stimulus): void {
    if (!('client' in stimulus)) return;
    const { client } = stimulus;
    if (stimulus.op === 'remove-client') {
      this.committed.delete(client);
      this.secretHashes.delete(client);
    }
    const number = reportNumberOf(stimulus);
    if (number === undefined) return;
    this.committed.set(client, number);
    this.output?.acknowledge(client, number);
  }

  /** Puts everything on the disk, and gives the folder back. Never throws. */
  close(): void {
    this.waiting?.cancel();
    this.beats?.cancel();
    try {
      this.output?.end();
    } catch (error) {
      this.log.error(
        { err: error },
        `the end of the journal may not be on the disk: ${String(error)}`,
      );
    }
    this.output = undefined;
    this.folder.lock.release();
  }

  /** Gives the kernel the state with which the newest segment begins. Nothing has happened to the scheduler yet. */
  private attach(services: Services): this {
    const kernel = services.get(SchedulerKernel);
    this.restore(kernel);
    this.header = headerOf(services, 'requests');
    this.host = {
      clock: services.get(CLOCK),
      kernel,
      sessions: services.get(Sessions),
      queue: services.get(StimulusQueue),
      shutdown: services.get(Shutdown),
      grace: services.get(ReconnectGrace),
      ports: services.get(PortsCompiler),
    };
    return this;
  }

  private restore(kernel: SchedulerKernel): void {
    const { checkpoint, parts } = this.contents;
    if (checkpoint === undefined) return;
    const { path } = this.folder;
    try {
      const difference = restoreCheckpoint(kernel, parts, checkpoint);
      if (difference !== undefined) {
        kernel.validate();
        this.log.error(
          { journal: path },
          `the journal ${path} has a checkpoint that is not restored exactly: ${difference}. This is a bug; the scheduler goes on with what was restored, which is consistent`,
        );
      }
    } catch (error) {
      throw asJournalError(error, `the journal ${path} has a checkpoint that cannot be restored`);
    }
    this.folder.lock.beat();
    // The kernel has them; another scheduler would read them again.
    this.contents = { ...this.contents, parts: [] };
    for (const [peer, hash] of checkpoint.journal?.secretHashes ?? []) {
      this.secretHashes.set(peer, hash);
    }
    for (const [client, number] of checkpoint.journal?.committed ?? []) {
      this.committed.set(client, number);
    }
  }

  private onEnd(task: TaskState): void {
    if (this.output === undefined) return;
    const failure = failureOf(task);
    if (failure !== undefined) this.failures.push(failure);
    const actor = task.isActor ? actorOf(task) : undefined;
    if (actor !== undefined) this.actors.push(actor);
  }

  private onLoss(task: TaskState): void {
    if (this.output !== undefined && isData(task) && task.state !== 'memory') {
      this.lostData.push(task.key);
    }
  }

  private noteEnds(): void {
    const { failures, actors, lostData } = this;
    this.failures = [];
    this.actors = [];
    this.lostData = [];
    const firstRunId = this.host.kernel.nextRunId;
    const ends = { failures, actors, lostData, firstRunId };
    this.pending.push({ op: 'restore-tasks', ...ends, stimulusId: 'journal' });
  }

  private note(entry: Stimulus): void {
    if (this.output !== undefined) this.pending.push(entry);
  }

  private takeRunIds(): void {
    const nextRunId = this.host.kernel.nextRunId + RUN_IDS;
    this.write({ op: 'begin-recovery', nextRunId, stimulusId: 'journal' });
    this.runIdsEnd = nextRunId;
  }

  /**
   * Shows that this scheduler has the folder, unless it did so less than so many milliseconds ago.
   * @returns an error when another one has taken it; then this one ends
   */
  private keepFolder(afterMs = 0): Error | undefined {
    const { clock, shutdown } = this.host;
    const nowMs = clock.nowMs();
    if (nowMs - this.beatMs < afterMs || this.hasFailed) return undefined;
    this.beatMs = nowMs;
    if (this.folder.lock.beat()) return undefined;
    const { path } = this.folder;
    const error = new YardmasterError(
      'ERR_JOURNAL',
      `another scheduler has taken over the journal ${path}, because this one had stood still for more than ${LEASE_MS / 1000} s; clients and workers continue there`,
      { folder: path },
    );
    this.hasFailed = true;
    this.output?.abandon();
    this.output = undefined;
    this.beats?.cancel();
    shutdown.stopBecause('its journal has another owner', error);
    return error;
  }

  private write(entry: Stimulus): void {
    // After a pause another scheduler may have the folder.
    const lost = this.keepFolder(LEASE_MS / 2);
    if (lost !== undefined) throw lost;
    this.output?.stimulus(entry, this.host.clock.nowMs());
    if (this.failure !== undefined && this.stopsOnError) throw this.failure;
  }

  /** @throws YardmasterError `ERR_JOURNAL` */
  private begin(): void {
    const { options, contents, folder, header, host } = this;
    const lost = this.keepFolder();
    if (lost !== undefined) throw lost;
    const { durability = 'commit', files = SYSTEM_FILES, segmentBytes = SEGMENT_BYTES } = options;
    const output = new LogOutput({
      target: folder.path,
      header,
      segment: contents.next,
      distance: { bytesMin: segmentBytes, ratio: GROWTH },
      durability,
      clock: host.clock,
      files,
      onCommit: (client, upTo) => host.sessions.clients.get(client)?.commit?.(upTo),
      onError: (error) => this.fail(error),
    });
    try {
      this.checkpoint(output);
    } catch (error) {
      output.abandon();
      throw asJournalError(error, `the journal ${folder.path} cannot be written`);
    }
    this.output = output;
  }

  private rotate(): void {
    try {
      this.checkpoint(this.output as LogOutput);
    } catch (error) {
      if (!isUnserialisable(error)) return; // It was reported.
      const { path } = this.folder;
      this.log.warn(
        { err: error, journal: path },
        `the journal ${path} only grows: ${String(error)}`,
      );
    }
  }

  private checkpoint(output: LogOutput): void {
    const { secretHashes, committed } = this;
    const { kernel, clock, ports } = this.host;
    const nextRunId = kernel.nextRunId + RUN_IDS;
    const journal = { nextRunId, secretHashes: [...secretHashes], committed: [...committed] };
    const checkpoint = { ...checkpointOf(kernel.cluster, ports.current), journal };
    output.checkpoint(kernel.snapshot(true), checkpoint, clock.nowMs());
    this.runIdsEnd = nextRunId;
  }

  private get stopsOnError(): boolean {
    return this.options.onJournalError !== 'continue';
  }

  /** Once: what comes later is not written. */
  private fail(cause: unknown): Error {
    const { path } = this.folder;
    const error = asJournalError(cause, `the journal ${path} cannot be written`);
    if (this.hasFailed) return error;
    this.hasFailed = true;
    this.failure = error;
    this.output?.abandon();
    this.output = undefined;
    if (this.stopsOnError) this.host.shutdown.stopBecause('its journal failed', error);
    else {
      const what = `${error.message}. The scheduler continues without it: what is submitted from now on is lost when it ends`;
      this.log.error({ err: error, journal: path }, what);
      for (const client of this.host.sessions.clients.values()) client.endCommits?.();
    }
    return error;
  }
}
