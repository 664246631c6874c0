import { HOOK_NAMES, type SchedulerHooks } from '../../../core/api/index.ts';
import type { HookCalls } from '../../../core/kernel/ports.ts';
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
  /** With `false` the story has transitions only: candidates cost more than all else of a replay. Default true. */
  readonly recordsDecisions?: boolean;
  /** Observers of what the kernel does. */
  readonly hooks?: Partial<SchedulerHooks>;
  /** Called before each frame that the kernel is handed. */
  readonly beforeFrame?: (frame: ReplayFrame) => void;
  /** Called after each frame that the kernel was handed. */
  readonly onFrame?: (frame: ReplayFrame, kernel: SchedulerKernel) => void;
  /** As `onFrame`, and the replay waits for it: false ends it. */
  readonly onStep?: (frame: ReplayFrame, kernel: SchedulerKernel) => Promise<boolean>;
}

/** Makes the kernel of a recording, and plays its frames. */
export class RecordingPlayer {
  header: LogHeader | undefined;
  replay: Replay | undefined;
  /** Names of the policies in charge, by slot. */
  policyNames: Readonly<Record<string, string>> = {};
  private policies: RecordedPolicies | undefined;

  constructor(private readonly options: ReplayOptions) {}

  get kernel(): SchedulerKernel | undefined {
    return this.replay?.kernel;
  }

  /** Resolves with false when the replay is to end after this frame. */
  async play(frame: LogFrame): Promise<boolean> {
    if (frame.kind === 'header') {
      this.header = frame.payload;
      this.policies = new RecordedPolicies(builtins, frame.payload.folder, this.options.policies);
      return true;
    }
    if (frame.kind === 'policies') {
      const bare = await this.policies?.ports(frame.payload);
      if (bare === undefined) return true;
      this.policyNames = namesOf(frame.payload);
      const ports = { ...bare, hooks: hookCalls(this.options.hooks ?? {}) };
      if (this.replay === undefined) {
        this.replay = new Replay(this.kernelOptions(), ports, frame.timeMs);
        const { storyLength, recordsDecisions = true } = this.options;
        if (storyLength !== undefined && recordsDecisions) {
          this.replay.kernel.insight.recordDecisions(storyLength);
        }
      } else this.replay.replacePorts(ports);
      return true;
    }
    if (frame.kind === 'entry' || frame.kind === 'checkpoint') return true;
    const { replay } = this;
    if (replay === undefined) return true;
    this.options.beforeFrame?.(frame);
    replay.play(frame);
    const { onFrame, onStep } = this.options;
    onFrame?.(frame, replay.kernel);
    return onStep === undefined || (await onStep(frame, replay.kernel));
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
