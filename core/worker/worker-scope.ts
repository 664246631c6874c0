import type { WorkerReport } from '../messages/stimulus.ts';
import type { Instruction } from './events.ts';
import type { WorkerTables } from './worker-tables.ts';
import type { WorkerTarget, WorkerTask } from './worker-task.ts';

/**
 * Transitions to come: the latest first; a further recommendation for the same task replaces its
 * target and keeps its turn. All operations O(1).
 */
class Recommendations {
  private readonly tasks: (WorkerTask | undefined)[] = [];
  private readonly targets: WorkerTarget[] = [];

  add(task: WorkerTask, target: WorkerTarget): void {
    if (task.pendingIndex >= 0) {
      this.targets[task.pendingIndex] = target;
      return;
    }
    task.pendingIndex = this.tasks.length;
    this.tasks.push(task);
    this.targets.push(target);
  }

  /** Takes out what is pending for one task. */
  take(task: WorkerTask): WorkerTarget | undefined {
    const index = task.pendingIndex;
    if (index < 0) return undefined;
    task.pendingIndex = -1;
    this.tasks[index] = undefined;
    return this.targets[index];
  }

  pop(): { readonly task: WorkerTask; readonly target: WorkerTarget } | undefined {
    while (this.tasks.length > 0) {
      const task = this.tasks.pop();
      const target = this.targets.pop();
      if (task === undefined || target === undefined) continue;
      task.pendingIndex = -1;
      return { task, target };
    }
    return undefined;
  }
}

/** The state and the outputs that transitions and event handlers work on. One per kernel. */
export class WorkerScope {
  readonly pending = new Recommendations();
  /** The event that is being handled. */
  stimulusId = '';
  /** Milliseconds that runs have to stop which this event gives up; undefined: the executor says. */
  killTimeoutMs: number | undefined = undefined;
  /** That of the order to drop data which is carried out; undefined: it is none, or does not say it. */
  reservation: number | undefined = undefined;
  private instructions: Instruction[] = [];
  private copies: string[] = [];
  /** Keys of this event's last report, if that report is about dropped results. */
  private released: string[] | undefined;

  constructor(readonly tables: WorkerTables) {}

  /** Begins an event: the entries that follow belong to it. */
  begin(stimulusId: string): void {
    this.stimulusId = stimulusId;
    this.killTimeoutMs = undefined;
    this.reservation = undefined;
    this.released = undefined;
  }

  /** No-op for a task whose data has arrived in this event: it goes to memory, whatever others want. */
  recommend(task: WorkerTask, target: WorkerTarget): void {
    if (task.arrivedNbytes >= 0 && target !== 'memory') return;
    this.pending.add(task, target);
  }

  emit(instruction: Instruction): void {
    this.instructions.push(instruction);
  }

  report(message: WorkerReport): void {
    this.released = undefined;
    this.instructions.push({ kind: 'send', message });
  }

  /** Reports runs that were taken back from this worker and no longer occupy a thread. */
  settleRuns(task: WorkerTask): void {
    if (task.owedRunIds.length === 0) return;
    this.reportRunsOver(task.owedRunIds);
    task.owedRunIds = [];
  }

  reportRunsOver(runIds: readonly number[]): void {
    this.report({ op: 'runs-over', runIds, stimulusId: this.stimulusId });
  }

  /** Copies that arrive in one event are reported together, by {@link reportCopies}. */
  addCopy(key: string): void {
    this.copies.push(key);
  }

  reportCopies(): void {
    if (this.copies.length === 0) return;
    this.report({ op: 'add-keys', keys: this.copies, stimulusId: this.stimulusId });
    this.copies = [];
  }

  /** Results that are dropped one after the other in one event are reported together. */
  reportReleased(key: string): void {
    if (this.released !== undefined) {
      this.released.push(key);
      return;
    }
    const keys = [key];
    const { reservation, stimulusId } = this;
    const order = reservation === undefined ? {} : { reservation };
    this.report({ op: 'release-worker-data', keys, ...order, stimulusId });
    this.released = keys;
  }

  takeInstructions(): readonly Instruction[] {
    const taken = this.instructions;
    this.instructions = [];
    return taken;
  }
}

/** A transition of the table in `transitions.ts`. */
export type WorkerTransition = (scope: WorkerScope, task: WorkerTask) => void;
