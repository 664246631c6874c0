import { KERNEL_SLOT_NAMES } from '../api/policies.ts';
import type { HookCalls, KernelOptions, KernelPorts, Named } from '../kernel/ports.ts';
import type { Outbox } from '../kernel/outbox.ts';
import { SchedulerKernel } from '../kernel/kernel.ts';
import { StateError, type StatePart } from '../kernel/snapshot.ts';
import type { Stimulus } from '../messages/stimulus.ts';
import type { ClusterState } from '../state/cluster.ts';
import { DecisionDigest, type DigestLanes, digestOfState } from './digest.ts';
import type { LogCheck, LogCheckpoint, LoggedPolicies } from './format.ts';

/** Receives what a kernel is handed, in order, behind a checkpoint. Only {@link checkpoint} may throw. */
export interface KernelLog {
  /** @param mark - see `FramePlace.mark` */
  stimulus(stimulus: Stimulus, nowMs: number, mark: number): void;
  policies(policies: LoggedPolicies, nowMs: number): void;
  check(check: LogCheck, nowMs: number): void;
  /**
   * True when so much was received since the last checkpoint that another one is worth its price.
   * @param tasks - that the kernel knows
   */
  isCheckpointDue(tasks: number): boolean;
  /**
   * The state as it is now.
   * @throws YardmasterError `ERR_NOT_SERIALISABLE` when it holds something that is no plain data
   */
  checkpoint(
    parts: Iterable<StatePart>,
    checkpoint: Omit<LogCheckpoint, 'parts'>,
    nowMs: number,
  ): void;
}

/** Stimuli between two checks. */
const STIMULI_PER_CHECK = 1000;
/** Checks between two that hash the whole state. */
const CHECKS_PER_STATE = 100;

/**
 * A kernel that can be recorded: it writes down all that it is handed before it handles it, from time to time what it
 * has decided, so that a replay can be compared, and its state, so that a replay can begin there. It decides as
 * {@link SchedulerKernel} does.
 */
export class RecordingKernel extends SchedulerKernel {
  private decisions = new DecisionDigest();
  private stimuli = 0;
  private nowMs: number;
  private bare: KernelPorts;
  private log: KernelLog | undefined;
  /** Called once, as soon as nothing is under way. */
  private whenQuiet: (() => void) | undefined;

  /** @param log - receives everything from the first stimulus on; without it nothing is recorded yet */
  constructor(options: Partial<KernelOptions>, ports: KernelPorts, nowMs: number, log?: KernelLog) {
    super(options, ports, nowMs);
    this.bare = ports;
    this.nowMs = nowMs;
    if (log !== undefined) this.begin(log);
  }

  get isRecording(): boolean {
    return this.log !== undefined;
  }

  /** A few bits of the digest of all decisions so far. */
  get mark(): number {
    return this.decisions.mark;
  }

  /**
   * Records from here on, beginning with a checkpoint, as soon as nothing is under way that later stimuli
   * continue: see {@link isQuiet}.
   * @param makeLog - called at that moment
   * @param failed - called instead when the checkpoint could not be written; nothing is recorded then
   */
  record(makeLog: () => KernelLog, begun: () => void, failed: (cause: unknown) => void): void {
    this.atRest(() => {
      try {
        this.begin(makeLog());
      } catch (cause) {
        failed(cause);
        return;
      }
      begun();
    });
  }

  /** Nothing is recorded from here on. */
  stopRecording(): void {
    this.log = undefined;
    this.whenQuiet = undefined;
    this.replaceHooks(this.bare.hooks);
  }

  /** Continues the hash of decisions from here. */
  set lanes(lanes: DigestLanes) {
    this.decisions.lanes = lanes;
  }

  override handle(stimulus: Stimulus, nowMs: number): Outbox {
    const { log } = this;
    this.nowMs = nowMs;
    if (log === undefined) {
      const outbox = super.handle(stimulus, nowMs);
      if (this.whenQuiet !== undefined) this.atRest(this.whenQuiet);
      return outbox;
    }
    log.stimulus(stimulus, nowMs, this.decisions.mark);
    const outbox = super.handle(stimulus, nowMs);
    this.decisions.addOutbox(outbox);
    if (++this.stimuli % STIMULI_PER_CHECK === 0) {
      const withState = this.stimuli % (STIMULI_PER_CHECK * CHECKS_PER_STATE) === 0;
      log.check(this.checkNow(withState), nowMs);
    }
    if (log.isCheckpointDue(this.cluster.tasks.size) && this.isQuiet) this.tryCheckpoint(log);
    return outbox;
  }

  override recover(stimulus: Stimulus, cause: unknown): Outbox {
    const outbox = super.recover(stimulus, cause);
    if (this.log !== undefined) this.decisions.addOutbox(outbox);
    return outbox;
  }

  override replacePorts(ports: KernelPorts): void {
    this.bare = ports;
    if (this.log === undefined) {
      super.replacePorts(ports);
      return;
    }
    this.log.policies(policiesOf(ports), this.nowMs);
    super.replacePorts({ ...ports, hooks: this.observed(ports.hooks) });
  }

  /**
   * The digest of all decisions so far.
   * @param withState - also the state, which is O(tasks)
   */
  checkNow(withState: boolean): LogCheck {
    const check = { decisions: this.decisions.toString(), transitions: this.transitionCounter };
    return withState ? { ...check, state: digestOfState(this.cluster) } : check;
  }

  private begin(log: KernelLog): void {
    this.decisions = new DecisionDigest();
    this.writeCheckpoint(log);
    this.log = log;
    this.stimuli = 0;
    this.replaceHooks(this.observed(this.bare.hooks));
  }

  private atRest(act: () => void): void {
    this.whenQuiet = act;
    if (!this.isQuiet) return;
    this.whenQuiet = undefined;
    act();
  }

  /** A recording can do without a further checkpoint. */
  private tryCheckpoint(log: KernelLog): void {
    try {
      this.writeCheckpoint(log);
    } catch {
      // The log asks for it again later.
    }
  }

  private writeCheckpoint(log: KernelLog): void {
    const { cluster, bare, decisions, nowMs } = this;
    log.checkpoint(this.snapshot(), checkpointOf(cluster, bare, decisions), nowMs);
  }

  /** The digest is the first observer of transitions. */
  private observed(hooks: HookCalls): HookCalls {
    const { decisions } = this;
    const add: (typeof hooks.taskTransition)[number] = (task, start, finish) => {
      decisions.addTransition(task as never, start, finish);
    };
    return { ...hooks, taskTransition: [add, ...hooks.taskTransition] };
  }
}

/** The payload of the frame that completes a checkpoint of this state. O(tasks + replicas). */
export function checkpointOf(
  cluster: ClusterState,
  ports: KernelPorts,
  { lanes } = new DecisionDigest(),
): Omit<LogCheckpoint, 'parts'> {
  return { policies: policiesOf(ports), lanes, state: digestOfState(cluster) };
}

/**
 * Gives a kernel that has handled nothing yet the state of a checkpoint.
 * @returns undefined when it is the state that was written, by its digest; else what is wrong
 * @throws StateError when it is no state, or a part of one
 */
export function restoreCheckpoint(
  kernel: SchedulerKernel,
  parts: readonly StatePart[],
  { parts: count, state }: LogCheckpoint,
): string | undefined {
  if (parts.length !== count) {
    throw new StateError(`it has ${count} parts, and ${parts.length} of them are there`);
  }
  kernel.restore(parts);
  const restored = digestOfState(kernel.cluster);
  if (restored === state) return undefined;
  return `what it restores has the digest ${restored}, and ${state} was written`;
}

function policiesOf(ports: KernelPorts): LoggedPolicies {
  const logged = ({ name, entry }: Named<unknown>): LoggedPolicies[string] =>
    entry === undefined ? { name } : { name, entry };
  return Object.fromEntries([
    ...KERNEL_SLOT_NAMES.map((slot) => [slot, logged(ports[slot])] as const),
    ...ports.rules.map((rule, index) => {
      return [`rules[${index}]`, { ...logged(rule), weight: rule.weight }] as const;
    }),
  ]);
}
