import type { KernelOptions } from '../kernel/options.ts';
import type { Outbox } from '../kernel/outbox.ts';
import type { KernelPorts } from '../kernel/ports.ts';
import { SchedulerKernel } from '../kernel/scheduler-kernel.ts';
import type { Stimulus } from '../messages/stimulus.ts';
import { DecisionDigest } from './decision-digest.ts';
import type { LogCheck, LoggedPolicies } from './format.ts';
import { KERNEL_SLOT_NAMES } from '../api/policies.ts';
import { digestOfState } from './state-digest.ts';

/** Receives what a kernel is handed, in order. Must not throw. */
export interface KernelLog {
  /** @param mark - see `FramePlace.mark` */
  stimulus(stimulus: Stimulus, nowMs: number, mark: number): void;
  policies(policies: LoggedPolicies, nowMs: number): void;
  check(check: LogCheck, nowMs: number): void;
}

/** Stimuli between two checks. */
const STIMULI_PER_CHECK = 1000;
/** Checks between two that hash the whole state. */
const CHECKS_PER_STATE = 100;

/**
 * A kernel that writes down all that it is handed before it handles it, and from time to time what it has
 * decided, so that a replay can be compared. It decides as {@link SchedulerKernel} does.
 */
export class RecordingKernel extends SchedulerKernel {
  private readonly decisions: DecisionDigest;
  private stimuli = 0;
  private nowMs: number;

  constructor(
    options: Partial<KernelOptions>,
    ports: KernelPorts,
    nowMs: number,
    private readonly log: KernelLog,
  ) {
    const decisions = new DecisionDigest();
    super(options, observed(ports, decisions), nowMs);
    this.decisions = decisions;
    this.nowMs = nowMs;
    log.policies(policiesOf(ports), nowMs);
  }

  /** What has been decided so far, in a few bits. */
  get mark(): number {
    return this.decisions.mark;
  }

  override handle(stimulus: Stimulus, nowMs: number): Outbox {
    this.nowMs = nowMs;
    this.log.stimulus(stimulus, nowMs, this.decisions.mark);
    const outbox = super.handle(stimulus, nowMs);
    this.decisions.addOutbox(outbox);
    if (++this.stimuli % STIMULI_PER_CHECK === 0) {
      const withState = this.stimuli % (STIMULI_PER_CHECK * CHECKS_PER_STATE) === 0;
      this.log.check(this.checkNow(withState), nowMs);
    }
    return outbox;
  }

  override replacePorts(ports: KernelPorts): void {
    this.log.policies(policiesOf(ports), this.nowMs);
    super.replacePorts(observed(ports, this.decisions));
  }

  /**
   * What has been decided so far.
   * @param withState - also the state, which is O(tasks)
   */
  checkNow(withState: boolean): LogCheck {
    const check = { decisions: this.decisions.toString(), transitions: this.transitionCounter };
    return withState ? { ...check, state: digestOfState(this.cluster) } : check;
  }
}

/** The same ports, with the digest as the first observer of transitions. */
function observed(ports: KernelPorts, decisions: DecisionDigest): KernelPorts {
  const { hooks } = ports;
  const add: (typeof hooks.taskTransition)[number] = (task, start, finish) => {
    decisions.addTransition(task as never, start, finish);
  };
  return { ...ports, hooks: { ...hooks, taskTransition: [add, ...hooks.taskTransition] } };
}

function policiesOf(ports: KernelPorts): LoggedPolicies {
  return Object.fromEntries(
    KERNEL_SLOT_NAMES.map((slot) => {
      const { name, entry } = ports[slot];
      return [slot, entry === undefined ? { name } : { name, entry }];
    }),
  );
}
