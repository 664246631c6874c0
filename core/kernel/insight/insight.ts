import type { Decision, ShadowReport, Why } from '../../api/insight.ts';
import type { KernelSlotName, KernelSlots } from '../../api/policies.ts';
import type { Named } from '../ports.ts';
import { knownTasks } from '../graph/prepare.ts';
import type { KernelScope } from '../scope.ts';
import { DecisionLog } from './decision-log.ts';
import { explainState } from './explain-state.ts';
import { Shadow } from './shadow.ts';

/**
 * Explains the decisions of a kernel: on demand, from a ring of recorded ones, and by comparison
 * with shadow policies. Change it between two stimuli only.
 */
export class Insight {
  private log: DecisionLog | undefined;
  private readonly shadows = new Map<KernelSlotName, Shadow>();

  constructor(private readonly scope: KernelScope) {}

  get isRecording(): boolean {
    return this.log !== undefined;
  }

  /** Records the newest decisions from here on; 0 stops it and forgets them. */
  recordDecisions(lengthMax: number): void {
    this.log = lengthMax > 0 ? new DecisionLog(this.scope, lengthMax) : undefined;
    this.refresh();
  }

  /** A decision that was made outside of the kernel, by a plugin. No-op unless decisions are recorded. */
  record(decision: Decision): void {
    this.log?.add(decision);
  }

  /** Why the task is where it is, and how it got there. */
  why(key: string): Why {
    const { scope, isRecording } = this;
    const task = scope.cluster.tasks.get(key);
    const story = scope.story.about([key]);
    // Data has no transitions when it comes.
    const isComputed = task?.runSpec !== undefined;
    return {
      key,
      state: task?.state ?? 'unknown',
      now:
        task === undefined
          ? [
              'the scheduler does not know the key: it was never submitted, or it is not needed any more',
            ]
          : explainState(scope, task),
      decisions: this.log?.about(key) ?? [],
      isRecording,
      story,
      isStoryCut: isComputed && story.find((record) => record.key === key)?.start !== 'released',
    };
  }

  /** Asks a policy whatever the one in charge of the slot is asked, from here on. */
  startShadow(slot: KernelSlotName, policy: Named<KernelSlots[KernelSlotName]>): void {
    const shadow = new Shadow(this.scope, slot, policy);
    this.shadows.set(slot, shadow);
    shadow.prepare?.(knownTasks(this.scope));
    this.refresh();
  }

  /** Returns what it found, or undefined when there was none. */
  stopShadow(slot: KernelSlotName): ShadowReport | undefined {
    const report = this.shadowReport(slot);
    this.shadows.delete(slot);
    this.refresh();
    return report;
  }

  shadowReport(slot: KernelSlotName): ShadowReport | undefined {
    return this.shadows.get(slot)?.report();
  }

  private refresh(): void {
    const log = this.log === undefined ? [] : [this.log];
    this.scope.watchers = [...log, ...this.shadows.values()];
  }
}
