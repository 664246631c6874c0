import { ModuleFiles } from '../../core/plugin-host/module-files.ts';
import { basename, resolve } from 'node:path';
import {
  HOOK_NAMES,
  type PluginContext,
  type SchedulerHooks,
  YardmasterError,
} from '../../core/api/index.ts';
import type { Config } from '../../core/config/types.ts';
import { configuration } from './config.ts';
import type { SchedulerKernel } from '../../core/kernel/kernel.ts';
import type { HookCalls, KernelPorts } from '../../core/kernel/ports.ts';
import type { StatePart } from '../../core/kernel/snapshot.ts';
import type { LogFrame, LoggedPolicies, LogHeader } from '../../core/log/format.ts';
import {
  Replay,
  type ReplayDifference,
  type ReplayFrame,
  type ReplayProgress,
} from '../../core/log/replay.ts';
import { type GivenPolicies, RecordedPolicies } from '../../core/plugin-host/load-extensions.ts';
import { kernelOptions } from '../../core/scheduler-host/tokens.ts';
import type { Bandwidths } from '../dashboard/bandwidths.ts';
import { type Past, PastSamples } from '../dashboard/past.ts';
import { type History, RunCollector } from '../report/index.ts';
import { builtins } from './builtin-extensions.ts';
import { type CheckpointPlace, checkpointsOf, readRecording } from './read-log.ts';

/** Transitions and decisions that can be looked back at from a moment. */
const STORY_LENGTH = 10_000;

/** A caution for people who look at a journal. */
export const JOURNAL_NOTE =
  'A journal holds what clients asked for and what failed, not what ran: tasks whose results were there are shown as not yet computed.';

/** The options of reading a log. */
type OpenOptions = Pick<ReplayOptions, 'allowPolicies'>;

/**
 * Reads a recording or a journal, or one file of it, for the dashboard.
 * @throws YardmasterError `ERR_LOG`, `ERR_REPLAY`, `ERR_PLUGIN_LOAD`
 */
export async function openPast(path: string, options: OpenOptions = {}): Promise<Past> {
  const samples = new PastSamples();
  const playing = { ...options, storyLength: STORY_LENGTH };
  const { player, damage } = await readWhole(path, samples, playing);
  const { header, kernel } = player;
  if (kernel === undefined || header === undefined) throw endsTooEarly(path);
  samples.finish(kernel.cluster);
  const isJournal = header.holds === 'requests';
  const difference = player.replay?.progress.difference;
  const notes = [
    ...(isJournal ? [JOURNAL_NOTE] : []),
    ...(difference === undefined
      ? []
      : [
          `This version decides otherwise than the one that recorded it, from frame ${difference.sequence} on: what follows is not what happened.`,
        ]),
    ...(damage === undefined ? [] : [`${damage.message}; what comes before it is shown.`]),
  ];
  const read = (from?: CheckpointPlace): AsyncIterable<LogFrame> => readRecording(path, from);
  const ended = { player, atMs: 1000 * samples.range.toS };
  const makePlayer = (): LogPlayer => new LogPlayer({ ...playing, recordsDecisions: false });
  const moments = new Moments(read, makePlayer, ended, () => checkpointsOf(path));
  // Why a task is where it is may have begun long before a checkpoint.
  const explained = new Moments(read, () => new LogPlayer(playing));
  return {
    ...{
      kind: isJournal ? 'journal' : 'recording',
      title: basename(resolve(path)),
      notes,
      samples,
    },
    ...{
      cluster: kernel.cluster,
      at: (atMs, isExplained) => (isExplained ? explained : moments).at(atMs),
    },
  };
}

interface WholeLog {
  readonly player: LogPlayer;
  readonly damage: YardmasterError | undefined;
}

async function readWhole(
  path: string,
  samples: PastSamples,
  options: ReplayOptions,
): Promise<WholeLog> {
  const player = new LogPlayer({ ...options, hooks: samples.hooks, recordsDecisions: false });
  let damage: YardmasterError | undefined;
  try {
    for await (const frame of readRecording(path)) {
      samples.setTime(frame.timeMs);
      if (frame.kind === 'stimulus' && frame.payload.op === 'move-replicas') {
        const { acquire, remove } = frame.payload;
        samples.addMoves(resultsIn(acquire), resultsIn(remove));
      }
      await player.play(frame);
      if (player.kernel === undefined) continue;
      readTransfers(frame, player.kernel, samples.bandwidths);
      samples.observe(player.kernel.cluster);
    }
  } catch (error) {
    if (!YardmasterError.is(error, 'ERR_LOG') || player.kernel === undefined) throw error;
    damage = error;
  }
  return { player, damage };
}

/** A heartbeat tells of the transfers since the one before. */
function readTransfers(frame: LogFrame, { cluster }: SchedulerKernel, to: Bandwidths): void {
  if (frame.kind !== 'stimulus' || frame.payload.op !== 'heartbeat-worker') return;
  const worker = cluster.workers.get(frame.payload.worker);
  if (worker !== undefined) to.readWorker(worker);
}

const resultsIn = (moves: readonly { readonly keys: readonly unknown[] }[]): number =>
  moves.reduce((sum, { keys }) => sum + keys.length, 0);

function endsTooEarly(file: string): YardmasterError {
  return new YardmasterError('ERR_LOG', `the log ${file} ends before its first stimulus`, { file });
}

type Source = Pick<PluginContext, 'cluster' | 'run'>;

/**
 * A log that can be looked at as of any moment. A moment is reached from the present one, or from the last checkpoint
 * before it, or from the beginning: O(frames in between).
 */
class Moments {
  private player: LogPlayer | undefined;
  private frames: AsyncIterator<LogFrame> | undefined;
  /** Read, and later than the present moment. */
  private next: LogFrame | undefined;
  private playedMs: number;
  private last: Promise<unknown> = Promise.resolve();
  private checkpoints: readonly CheckpointPlace[] | undefined;

  /**
   * @param ended - one that has played all frames: the end costs nothing then
   * @param findCheckpoints - where playing can begin besides the start, in order of time; asked once, when it is needed
   */
  constructor(
    private readonly read: (from?: CheckpointPlace) => AsyncIterable<LogFrame>,
    private readonly makePlayer: () => LogPlayer,
    ended?: { readonly player: LogPlayer; readonly atMs: number },
    private readonly findCheckpoints?: () => readonly CheckpointPlace[],
  ) {
    this.player = ended?.player;
    this.playedMs = ended?.atMs ?? Infinity;
  }

  /**
   * The scheduler as it was then. It is valid until the next turn of the event loop.
   * @throws YardmasterError `ERR_LOG` when not even the beginning can be read
   */
  at(atMs: number): Promise<Source> {
    const found = this.last.then(() => this.moveTo(atMs));
    // The caller looks at this moment before the kernel moves on.
    const looked = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    this.last = found.then(looked, looked);
    return found;
  }

  private async moveTo(atMs: number): Promise<Source> {
    const isEarlier = this.player === undefined || atMs < this.playedMs;
    const checkpoint = this.lastCheckpoint(atMs);
    const isNearer = checkpoint !== undefined && checkpoint.timeMs > this.playedMs;
    if (isEarlier || isNearer) await this.restart(checkpoint);
    const { player } = this;
    for (let frame = await this.readFrame(); frame !== undefined; frame = await this.readFrame()) {
      if (player?.kernel !== undefined && frame.timeMs > atMs) {
        this.next = frame;
        break;
      }
      await player?.play(frame);
      this.playedMs = frame.timeMs;
    }
    const kernel = player?.kernel;
    if (kernel !== undefined) return sourceOf(kernel, player?.policyNames ?? {});
    throw new YardmasterError('ERR_LOG', 'the log ends before its first stimulus');
  }

  private lastCheckpoint(atMs: number): CheckpointPlace | undefined {
    this.checkpoints ??= this.findCheckpoints?.();
    return this.checkpoints?.findLast(({ timeMs }) => timeMs <= atMs);
  }

  private async restart(from: CheckpointPlace | undefined): Promise<void> {
    await this.frames?.return?.(); // It closes its file.
    this.player = this.makePlayer();
    this.frames = this.read(from)[Symbol.asyncIterator]();
    this.next = undefined;
    this.playedMs = -Infinity;
  }

  /** Undefined at the end, and where the log is damaged: a note says that when it is opened. */
  private async readFrame(): Promise<LogFrame | undefined> {
    const { next } = this;
    this.next = undefined;
    if (next !== undefined) return next;
    try {
      const read = await this.frames?.next();
      return read?.done === false ? read.value : undefined;
    } catch (error) {
      if (YardmasterError.is(error, 'ERR_LOG')) return undefined;
      throw error;
    }
  }
}

/** The source of the pages' answers: a kernel that nothing runs. */
function sourceOf(kernel: SchedulerKernel, policies: Readonly<Record<string, string>>): Source {
  return {
    cluster: kernel.cluster,
    run: (command, parameters) => {
      const { key = '', keys = [] } = (parameters ?? {}) as { key?: string; keys?: string[] };
      if (command === 'why') return kernel.insight.why(key);
      if (command === 'story') return kernel.story(...keys);
      if (command === 'policies') return policies;
      if (command === 'logs') return { scheduler: [], workers: [] };
      throw new YardmasterError(
        'ERR_PROTOCOL',
        `"${command}" asks a scheduler that runs, and this one is gone`,
        { command },
      );
    },
  };
}

/** The work that was done, as a recording has it. */
export interface RecordedHistory {
  readonly header: LogHeader;
  readonly history: History;
  /** From here on the replay decided otherwise, so that what it shows is not what happened. */
  readonly difference: ReplayDifference | undefined;
  /** The damage of the file after the last frame that was read: `ERR_LOG`. */
  readonly damage: YardmasterError | undefined;
}

/** Looks at the memory of workers are at least so far apart. */
const SAMPLE_MS = 100;

/**
 * Replays a recording, and collects its runs.
 * @throws YardmasterError as `replayRecording`
 */
export async function recordingHistory(
  file: string,
  options: Pick<ReplayOptions, 'policies' | 'allowPolicies'> = {},
): Promise<RecordedHistory> {
  let nowMs = 0;
  let sampledMs = -Infinity;
  const collector = new RunCollector(() => nowMs);
  const { header, kernel, difference, damage } = await replayRecording(file, {
    ...options,
    hooks: collector.hooks,
    beforeFrame: ({ timeMs }) => {
      nowMs = timeMs;
    },
    onFrame: (frame, kernel) => {
      const { timeMs } = frame;
      readTransfers(frame, kernel, collector.bandwidths);
      if (timeMs - sampledMs < SAMPLE_MS) return;
      sampledMs = timeMs;
      collector.sample(kernel.cluster);
    },
  });
  return { header, history: collector.finish(kernel.cluster), difference, damage };
}

/** The options of a replay. */
export interface ReplayOptions {
  /** Policies for slots whose recorded ones were given as objects in code. */
  readonly policies?: GivenPolicies;
  /**
   * Imports the files and packages of policies that the recording names. A recording may come from others, so by
   * default only built-in policies are loaded, and those that are given.
   */
  readonly allowPolicies?: boolean;
  /** The checkpoint at which the replay begins. Default: at the first frame. */
  readonly from?: CheckpointPlace;
  /** Sequence number of the frame after which the replay ends; default: the whole recording. */
  readonly until?: number;
  /** Checks every invariant after each stimulus; slow. Default false. */
  readonly validate?: boolean;
  /** Keep this many of the newest decisions and transitions, for `kernel.insight`. Default 1000. */
  readonly storyLength?: number;
  /** With `false` the story has transitions only: candidates cost more than all else of a replay. Default true. */
  readonly recordsDecisions?: boolean;
  /** Observers of what the kernel does. */
  readonly hooks?: Partial<SchedulerHooks>;
  /** Called before each frame that the kernel is handed, the checkpoint with which it begins among them. */
  readonly beforeFrame?: (frame: Pick<LogFrame, 'timeMs'>) => void;
  /** Called after each frame that the kernel was handed. */
  readonly onFrame?: (frame: ReplayFrame, kernel: SchedulerKernel) => void;
  /** As `onFrame`, and the replay waits for it: false ends it. `startMs` is when the recording began. */
  readonly onStep?: (
    frame: ReplayFrame,
    kernel: SchedulerKernel,
    startMs: number,
  ) => Promise<boolean>;
}

/** Makes the kernel of a log, and plays its frames. */
class LogPlayer {
  header: LogHeader | undefined;
  replay: Replay | undefined;
  /** Names of the policies in charge, by slot. */
  policyNames: Readonly<Record<string, string>> = {};
  private policies: RecordedPolicies | undefined;
  private startMs = 0;

  /** Of a checkpoint that is being read. */
  private readonly parts: StatePart[] = [];

  /** @param file - for messages */
  constructor(
    private readonly options: ReplayOptions,
    private readonly file?: string,
  ) {}

  get kernel(): SchedulerKernel | undefined {
    return this.replay?.kernel;
  }

  /** Resolves with false when the replay is to end after this frame. */
  async play(frame: LogFrame): Promise<boolean> {
    if (frame.kind === 'header') {
      this.header = frame.payload;
      this.startMs = frame.timeMs;
      const { policies, allowPolicies } = this.options;
      const { folder } = frame.payload;
      this.policies = new RecordedPolicies(
        builtins,
        new ModuleFiles(folder),
        policies,
        allowPolicies,
      );
      return true;
    }
    const { replay, parts } = this;
    if (frame.kind === 'policies') {
      replay?.replacePorts(await this.portsOf(frame.payload));
      return true;
    }
    if (frame.kind === 'state') {
      // A checkpoint that could not be written completely is followed by another one.
      if (frame.payload.part === 'kernel') parts.length = 0;
      if (replay === undefined) parts.push(frame.payload);
      return true;
    }
    if (frame.kind === 'checkpoint') {
      if (replay === undefined) await this.begin(frame);
      else replay.pass(frame.payload);
      return true;
    }
    if (replay === undefined) return true;
    this.options.beforeFrame?.(frame);
    replay.play(frame);
    const { onFrame, onStep } = this.options;
    onFrame?.(frame, replay.kernel);
    return onStep === undefined || (await onStep(frame, replay.kernel, this.startMs));
  }

  /** The first frames of a log are a checkpoint; others are compared. */
  private async begin(frame: Extract<LogFrame, { kind: 'checkpoint' }>): Promise<void> {
    const { parts, header } = this;
    const ports = await this.portsOf(frame.payload.policies);
    const { holds = 'all' } = header ?? {};
    const replay = new Replay(this.kernelOptions(), ports, frame.timeMs, holds);
    this.options.beforeFrame?.(frame);
    try {
      replay.begin(parts, frame.payload);
    } catch (cause) {
      throw this.unreadable(frame, cause);
    }
    parts.length = 0;
    this.replay = replay;
    const { storyLength, recordsDecisions = true } = this.options;
    if (storyLength !== undefined && recordsDecisions) {
      replay.kernel.insight.recordDecisions(storyLength);
    }
  }

  private async portsOf(recorded: LoggedPolicies): Promise<KernelPorts> {
    const { policies } = this;
    if (policies === undefined) throw new YardmasterError('ERR_LOG', 'the log has no header');
    const bare = await policies.ports(recorded);
    this.policyNames = namesOf(recorded);
    return { ...bare, hooks: hookCalls(this.options.hooks ?? {}) };
  }

  private unreadable({ offset, sequence }: LogFrame, cause: unknown): YardmasterError {
    const { file = 'of this recording', header } = this;
    return new YardmasterError(
      'ERR_LOG',
      `the log ${file} has a checkpoint that cannot be restored, at byte ${offset} (frame ${sequence}): ${(cause as Error).message}; replay it with Yardmaster ${header?.version ?? 'of its version'}, which wrote it`,
      { file, offset, frame: sequence, damage: 'foreign' },
      { cause },
    );
  }

  private kernelOptions(): ReturnType<typeof kernelOptions> {
    const recorded = this.header?.config as Partial<Config> | undefined;
    // A log lacks the settings that came after it.
    const { config: today } = configuration.readObject({});
    const { validate, storyLength } = this.options;
    return {
      ...kernelOptions({ scheduler: { ...today.scheduler, ...recorded?.scheduler } }),
      ...(validate === undefined ? {} : { validate }),
      ...(storyLength === undefined ? {} : { transitionLogLength: storyLength }),
    };
  }
}

function namesOf(policies: LoggedPolicies): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(policies).map(([slot, { name }]) => [slot, name]));
}

/** Hooks of one observer, as a kernel calls them. */
function hookCalls(hooks: Partial<SchedulerHooks>): HookCalls {
  const calls = HOOK_NAMES.map((name) => [name, hooks[name] === undefined ? [] : [hooks[name]]]);
  return Object.fromEntries(calls) as HookCalls;
}

/** The end of a replay. */
export interface ReplayResult extends ReplayProgress {
  readonly header: LogHeader;
  /** Sequence number of the last frame that was read. */
  readonly lastFrame: number;
  /** The kernel as it was at the end, to be asked why. */
  readonly kernel: SchedulerKernel;
  /** The damage of the file after the last frame that was replayed: `ERR_LOG`. */
  readonly damage: YardmasterError | undefined;
}

/**
 * Runs a recording through the kernel, and compares what it decides with what was recorded.
 * @throws YardmasterError `ERR_LOG` when not even the header can be read; `ERR_REPLAY`; `ERR_PLUGIN_LOAD` when a
 *   policy of the recording is not there
 */
export async function replayRecording(
  file: string,
  options: ReplayOptions = {},
): Promise<ReplayResult> {
  const player = new LogPlayer(options, file);
  let damage: YardmasterError | undefined;
  let lastFrame = 0;
  try {
    for await (const frame of readRecording(file, options.from)) {
      const mayContinue = await player.play(frame);
      lastFrame = frame.sequence;
      if (!mayContinue || frame.sequence >= (options.until ?? Infinity)) break;
    }
  } catch (error) {
    if (!YardmasterError.is(error, 'ERR_LOG') || player.replay === undefined) throw error;
    damage = error;
  }
  const { header, replay } = player;
  if (header === undefined || replay === undefined) throw endsTooEarly(file);
  return { ...replay.progress, header, lastFrame, kernel: replay.kernel, damage };
}
