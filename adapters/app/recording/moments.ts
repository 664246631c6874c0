import { type PluginContext, YardmasterError } from '../../../core/api/index.ts';
import type { SchedulerKernel } from '../../../core/kernel/scheduler-kernel.ts';
import type { LogFrame } from '../../../core/log/format.ts';
import type { CheckpointPlace } from './checkpoint-index.ts';

/** Brings a kernel from frame to frame of a log. */
export interface LogPlayer {
  /** Undefined before the first frames were played. */
  readonly kernel: SchedulerKernel | undefined;
  readonly policyNames: Readonly<Record<string, string>>;
  play(frame: LogFrame): Promise<unknown>;
}

type Source = Pick<PluginContext, 'cluster' | 'run'>;

/**
 * A log that can be looked at as of any moment. A moment is reached from the present one, or from the last checkpoint
 * before it, or from the beginning: O(frames in between).
 */
export class Moments {
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
    private readonly findCheckpoints?: () => Promise<readonly CheckpointPlace[]>,
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
    const checkpoint = await this.lastCheckpoint(atMs);
    const isNearer = checkpoint !== undefined && checkpoint.timeMs > this.playedMs;
    if (isEarlier || isNearer) this.restart(checkpoint);
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

  private async lastCheckpoint(atMs: number): Promise<CheckpointPlace | undefined> {
    this.checkpoints ??= await this.findCheckpoints?.();
    return this.checkpoints?.findLast(({ timeMs }) => timeMs <= atMs);
  }

  private restart(from: CheckpointPlace | undefined): void {
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

/** What the pages ask of a scheduler, answered by a kernel that nothing runs. */
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
