import { HOOK_NAMES, type SchedulerHooks, YardmasterError } from '../../../core/api/index.ts';
import type { HookCalls } from '../../../core/kernel/ports.ts';
import type { Config } from '../../../core/config/types.ts';
import type { LogFrame, LogHeader } from '../../../core/log/format.ts';
import { LogReader } from '../../../core/log/log-reader.ts';
import { Replay, type ReplayFrame, type ReplayProgress } from '../../../core/log/replay.ts';
import type { SchedulerKernel } from '../../../core/kernel/scheduler-kernel.ts';
import {
  type GivenPolicies,
  RecordedPolicies,
} from '../../../core/plugin-host/recorded-policies.ts';
import { kernelOptions } from '../../../core/scheduler-host/kernel-options.ts';
import { MsgpackCodec } from '../../codecs/msgpack/index.ts';
import { readBytes } from '../../log/read-log.ts';
import { builtins } from '../builtin-extensions.ts';

/** How a recording is replayed. */
export interface ReplayOptions {
  /** Policies for slots whose recorded ones were given as objects in code. */
  readonly policies?: GivenPolicies;
  /** Sequence number of the frame after which the replay ends; default: the whole recording. */
  readonly until?: number;
  /** Checks every invariant after each stimulus; slow. Default false. */
  readonly validate?: boolean;
  /** Keep this many of the newest decisions and transitions, for `kernel.insight`. Default 1000. */
  readonly storyLength?: number;
  /** Observers of what the kernel does. */
  readonly hooks?: Partial<SchedulerHooks>;
  /** Called before each frame that the kernel is handed. */
  readonly beforeFrame?: (frame: ReplayFrame) => void;
  /** Called after each frame that the kernel was handed. */
  readonly onFrame?: (frame: ReplayFrame, kernel: SchedulerKernel) => void;
}

/** The end of a replay. */
export interface ReplayResult extends ReplayProgress {
  readonly header: LogHeader;
  /** Sequence number of the last frame that was read. */
  readonly lastFrame: number;
  /** The kernel as it was at the end, to be asked why. */
  readonly kernel: SchedulerKernel;
  /** What is wrong with the file after the last frame that was replayed: `ERR_LOG`. */
  readonly damage: YardmasterError | undefined;
}

/**
 * Frames of a recording, each checked. The last thing it does is to throw when the file is damaged.
 * @throws YardmasterError `ERR_LOG` with file, offset and kind of damage
 */
export async function* readRecording(file: string): AsyncGenerator<LogFrame, void, undefined> {
  const reader = new LogReader(new MsgpackCodec(), file);
  for await (const bytes of readBytes(file)) yield* reader.read(bytes);
  reader.end();
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
  const player = new Player(options);
  let damage: YardmasterError | undefined;
  let lastFrame = 0;
  try {
    for await (const frame of readRecording(file)) {
      await player.play(frame);
      lastFrame = frame.sequence;
      if (frame.sequence >= (options.until ?? Infinity)) break;
    }
  } catch (error) {
    if (!YardmasterError.is(error, 'ERR_LOG') || player.replay === undefined) throw error;
    damage = error;
  }
  const { header, replay } = player;
  if (header === undefined || replay === undefined) {
    throw new YardmasterError('ERR_LOG', `the log ${file} ends before its first stimulus`, {
      file,
    });
  }
  return { ...replay.progress, header, lastFrame, kernel: replay.kernel, damage };
}

/** Makes the kernel of a recording, and plays its frames. */
class Player {
  header: LogHeader | undefined;
  replay: Replay | undefined;
  private policies: RecordedPolicies | undefined;

  constructor(private readonly options: ReplayOptions) {}

  async play(frame: LogFrame): Promise<void> {
    if (frame.kind === 'header') {
      this.header = frame.payload;
      this.policies = new RecordedPolicies(builtins, frame.payload.folder, this.options.policies);
      return;
    }
    if (frame.kind === 'policies') {
      const bare = await this.policies?.ports(frame.payload);
      if (bare === undefined) return;
      const ports = { ...bare, hooks: hookCalls(this.options.hooks ?? {}) };
      if (this.replay === undefined) {
        this.replay = new Replay(this.kernelOptions(), ports, frame.timeMs);
        const { storyLength } = this.options;
        if (storyLength !== undefined) this.replay.kernel.insight.recordDecisions(storyLength);
      } else this.replay.replacePorts(ports);
      return;
    }
    if (frame.kind === 'entry' || frame.kind === 'checkpoint') return;
    const { replay } = this;
    if (replay === undefined) return;
    this.options.beforeFrame?.(frame);
    replay.play(frame);
    this.options.onFrame?.(frame, replay.kernel);
  }

  private kernelOptions(): ReturnType<typeof kernelOptions> {
    const recorded = kernelOptions(this.header?.config as unknown as Config);
    const { validate, storyLength } = this.options;
    return {
      ...recorded,
      ...(validate === undefined ? {} : { validate }),
      ...(storyLength === undefined ? {} : { transitionLogLength: storyLength }),
    };
  }
}

function hookCalls(hooks: Partial<SchedulerHooks>): HookCalls {
  const calls = HOOK_NAMES.map((name) => [name, hooks[name] === undefined ? [] : [hooks[name]]]);
  return Object.fromEntries(calls) as HookCalls;
}
