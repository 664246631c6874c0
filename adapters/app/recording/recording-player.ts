import { HOOK_NAMES, type SchedulerHooks, YardmasterError } from '../../../core/api/index.ts';
import type { HookCalls, KernelPorts } from '../../../core/kernel/ports.ts';
import type { StatePart } from '../../../core/kernel/snapshot/state-parts.ts';
import type { Config } from '../../../core/config/types.ts';
import type { LoggedPolicies, LogFrame, LogHeader } from '../../../core/log/format.ts';
import type { SchedulerKernel } from '../../../core/kernel/scheduler-kernel.ts';
import { Replay, type ReplayFrame } from '../../../core/log/replay.ts';
import {
  type GivenPolicies,
  RecordedPolicies,
} from '../../../core/plugin-host/recorded-policies.ts';
import { kernelOptions } from '../../../core/scheduler-host/kernel-options.ts';
import { builtins } from '../builtin-extensions.ts';
import type { CheckpointPlace } from './checkpoint-index.ts';

/** How a recording is replayed. */
export interface ReplayOptions {
  /** Policies for slots whose recorded ones were given as objects in code. */
  readonly policies?: GivenPolicies;
  /**
   * Imports the files and packages of policies that the recording names. A recording may come from others, so by
   * default only built-in policies are loaded, and those that are given.
   */
  readonly allowPolicies?: boolean;
  /** Where the replay begins. Default: at the first frame. */
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
  /** Called before each frame that the kernel is handed. */
  readonly beforeFrame?: (frame: ReplayFrame) => void;
  /** Called after each frame that the kernel was handed. */
  readonly onFrame?: (frame: ReplayFrame, kernel: SchedulerKernel) => void;
  /** As `onFrame`, and the replay waits for it: false ends it. `startMs` is when the recording began. */
  readonly onStep?: (
    frame: ReplayFrame,
    kernel: SchedulerKernel,
    startMs: number,
  ) => Promise<boolean>;
}

/** Makes the kernel of a recording, and plays its frames. */
export class RecordingPlayer {
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
      this.policies = new RecordedPolicies(builtins, folder, policies, allowPolicies);
      return true;
    }
    if (frame.kind === 'policies') {
      const ports = await this.portsOf(frame.payload);
      if (this.replay !== undefined) this.replay.replacePorts(ports);
      else this.start(new Replay(this.kernelOptions(), ports, frame.timeMs));
      return true;
    }
    if (frame.kind === 'state' || frame.kind === 'checkpoint') {
      await this.playCheckpoint(frame);
      return true;
    }
    const { replay } = this;
    if (frame.kind === 'entry' || replay === undefined) return true;
    this.options.beforeFrame?.(frame);
    replay.play(frame);
    const { onFrame, onStep } = this.options;
    onFrame?.(frame, replay.kernel);
    return onStep === undefined || (await onStep(frame, replay.kernel, this.startMs));
  }

  /** The first frames of a recording may be a checkpoint; others are compared. */
  private async playCheckpoint(
    frame: Extract<LogFrame, { kind: 'state' | 'checkpoint' }>,
  ): Promise<void> {
    const { replay, parts } = this;
    if (frame.kind === 'state') {
      // A checkpoint that could not be written completely is followed by another one.
      if (frame.payload.part === 'kernel') parts.length = 0;
      if (replay === undefined) parts.push(frame.payload);
      return;
    }
    if ('entries' in frame.payload) return;
    if (replay !== undefined) {
      replay.pass(frame.payload);
      return;
    }
    const ports = await this.portsOf(frame.payload.policies);
    const begun = new Replay(this.kernelOptions(), ports, frame.timeMs);
    try {
      begun.begin(parts, frame.payload);
    } catch (cause) {
      throw this.unreadable(frame, cause);
    }
    parts.length = 0;
    this.start(begun);
  }

  private start(replay: Replay): void {
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
    const recorded = kernelOptions(this.header?.config as unknown as Config);
    const { validate, storyLength } = this.options;
    return {
      ...recorded,
      ...(validate === undefined ? {} : { validate }),
      ...(storyLength === undefined ? {} : { transitionLogLength: storyLength }),
    };
  }
}

function namesOf(policies: LoggedPolicies): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(policies).map(([slot, { name }]) => [slot, name]));
}

/** Hooks of one observer, as a kernel calls them. */
export function hookCalls(hooks: Partial<SchedulerHooks>): HookCalls {
  const calls = HOOK_NAMES.map((name) => [name, hooks[name] === undefined ? [] : [hooks[name]]]);
  return Object.fromEntries(calls) as HookCalls;
}
