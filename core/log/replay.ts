import type { TransitionRecord } from '../api/insight.ts';
import type { KernelOptions, KernelPorts } from '../kernel/ports.ts';
import type { SchedulerKernel } from '../kernel/kernel.ts';
import { StateError, type StatePart } from '../kernel/snapshot.ts';
import type { Stimulus } from '../messages/stimulus.ts';
import type { LogCheck, LogCheckpoint, LogFrame, LogHeader } from './format.ts';
import { type KernelLog, RecordingKernel, restoreCheckpoint } from './recording-kernel.ts';

/** A frame that the kernel is handed, or compared with. */
export type ReplayFrame = Extract<LogFrame, { kind: 'stimulus' | 'check' | 'end' }>;

/** A place at which a replay decides otherwise than the recording. */
export interface ReplayDifference {
  /** The first stimulus after which the decisions differ. */
  readonly stimulus: Stimulus | undefined;
  /** Sequence number of its frame. */
  readonly sequence: number;
  /** The kind of difference: `decisions`, `transitions`, or the `state`. */
  readonly what: 'decisions' | 'transitions' | 'state';
  readonly recorded: string;
  readonly replayed: string;
  /** The transitions of the replay because of the stimulus. */
  readonly story: readonly TransitionRecord[];
}

export interface ReplayProgress {
  readonly stimuli: number;
  readonly checks: number;
  /** Checks that included the whole state. */
  readonly stateChecks: number;
  readonly transitions: number;
  /** Undefined: everything was decided as in the recording. */
  readonly difference: ReplayDifference | undefined;
  /** True when the recording was closed in good order. */
  readonly isComplete: boolean;
}

/**
 * Hands the stimuli of a log to a kernel. With those of a recording it compares what the kernel decides with what was
 * recorded; after the first difference nothing is compared any more, because all that follows differs as well. With those of
 * a journal it comes to where a scheduler is that starts again, before its workers are back.
 */
export class Replay {
  private readonly recording: RecordingKernel;
  private stimuli = 0;
  private checks = 0;
  private stateChecks = 0;
  private difference: ReplayDifference | undefined;
  private isComplete = false;
  private last: { readonly stimulus: Stimulus; readonly sequence: number } | undefined;

  constructor(
    options: Partial<KernelOptions>,
    ports: KernelPorts,
    private nowMs: number,
    private readonly holds: LogHeader['holds'],
  ) {
    this.recording = new RecordingKernel(options, ports, nowMs, NO_LOG);
  }

  get kernel(): SchedulerKernel {
    return this.recording;
  }

  get progress(): ReplayProgress {
    const { stimuli, checks, stateChecks, difference, isComplete } = this;
    const { transitionCounter: transitions } = this.recording;
    return { stimuli, checks, stateChecks, transitions, difference, isComplete };
  }

  /**
   * Begins with the state of a checkpoint.
   * @throws StateError when it is not what was written
   */
  begin(parts: readonly StatePart[], checkpoint: LogCheckpoint): void {
    const difference = restoreCheckpoint(this.recording, parts, checkpoint);
    if (difference !== undefined) throw new StateError(difference);
    this.recording.lanes = checkpoint.lanes;
    if (this.holds === 'requests') this.handle({ op: 'forget-placements', stimulusId: 'journal' });
  }

  /** A checkpoint that is met on the way is compared like any check. */
  pass({ state }: LogCheckpoint): void {
    this.compare({ ...this.recording.checkNow(false), state });
  }

  /** Other policies are in charge from here on. */
  replacePorts(ports: KernelPorts): void {
    this.recording.replacePorts(ports);
  }

  /** @throws YardmasterError what the kernel throws when it cannot recover; a recording of a crash ends in it */
  play(frame: ReplayFrame): void {
    const isExact = this.holds === 'all';
    if (frame.kind !== 'stimulus') {
      if (isExact) this.compare(frame.payload as LogCheck);
      this.isComplete = frame.kind === 'end';
      return;
    }
    if (isExact) this.compareMark(frame.mark);
    const { payload: stimulus, sequence, timeMs } = frame;
    this.last = { stimulus, sequence };
    this.nowMs = timeMs;
    this.stimuli++;
    // In a journal it says which ids of runs are taken, which concerns a scheduler that runs.
    if (!isExact && stimulus.op === 'begin-recovery') return;
    this.handle(stimulus);
    if (isExact) return;
    const { stimulusId } = stimulus;
    while (this.recording.isUnsettled) this.handle({ op: 'continue', stimulusId });
  }

  private handle(stimulus: Stimulus): void {
    try {
      this.recording.handle(stimulus, this.nowMs);
    } catch (cause) {
      this.recording.recover(stimulus, cause);
    }
  }

  private compareMark(recorded: number): void {
    const { mark } = this.recording;
    if (recorded !== mark) this.differ('decisions', recorded.toString(16), mark.toString(16));
  }

  private compare(recorded: LogCheck): void {
    const replayed = this.recording.checkNow(recorded.state !== undefined);
    this.checks++;
    if (recorded.state !== undefined) this.stateChecks++;
    if (recorded.decisions !== replayed.decisions) {
      this.differ('decisions', recorded.decisions, replayed.decisions);
    } else if (recorded.transitions !== replayed.transitions) {
      this.differ('transitions', String(recorded.transitions), String(replayed.transitions));
    } else if (recorded.state !== replayed.state) {
      this.differ('state', String(recorded.state), String(replayed.state));
    }
  }

  private differ(what: ReplayDifference['what'], recorded: string, replayed: string): void {
    if (this.difference !== undefined) return;
    const { stimulus, sequence = 0 } = this.last ?? {};
    const story = stimulus === undefined ? [] : this.recording.story(stimulus.stimulusId);
    this.difference = { stimulus, sequence, what, recorded, replayed, story };
  }
}

/** Takes everything and keeps nothing. */
export const NO_LOG: KernelLog = {
  isCheckpointDue: () => false,
  stimulus: () => undefined,
  policies: () => undefined,
  check: () => undefined,
  checkpoint: () => undefined,
};
