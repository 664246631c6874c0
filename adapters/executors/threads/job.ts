import type {
  AbortRun,
  ExecutableTask,
  ExecutionResult,
  TaskSlot,
  Timer,
} from '../../../core/api/index.ts';

/** What a job needs of the thread that it was handed to. */
interface JobThread {
  /** Takes back the jobs that have not begun, in order. */
  takeBack(): Job[];
  /** Aborts the job. One that continues after its grace period is ended by force. */
  abort(job: Job): void;
}

/**
 * Whether a run occupies a slot: `occupied`; `seceded`: it continues without a slot and may compute, so its
 * thread takes nothing else; `parked`: it waits without a slot, and its thread runs others meanwhile.
 */
export type SlotState = 'occupied' | 'seceded' | 'parked';

/** One run, from when the pool gets it to its end. */
export class Job {
  /** Where it is, or was. */
  thread: JobThread | undefined = undefined;
  /** Its place in the order of that thread's runs. */
  number = 0;
  slotState: SlotState = 'occupied';
  isAborted = false;
  /** Why, as its owner said. */
  abortReason: Parameters<AbortRun>[0] = undefined;
  /** Milliseconds that it may continue after it was aborted. */
  graceMs = 0;
  isKilled = false;
  /** Whether it was on a thread that died and it was not known which of its runs was the cause. */
  wasSuspected = false;
  private graceTimer: Timer | undefined = undefined;
  private hasEnded = false;

  /** @param mayReturn - its owner takes it back when it cannot begin */
  constructor(
    readonly task: ExecutableTask,
    readonly slot: TaskSlot | undefined,
    private readonly onEnd: (result: ExecutionResult) => void,
    readonly mayReturn: boolean,
  ) {}

  get key(): string {
    return this.task.key;
  }

  get isShort(): boolean {
    return this.task.isShort === true;
  }

  /** Whether it needs no turn in the line of its thread. */
  get isConcurrent(): boolean {
    return this.task.isConcurrent === true;
  }

  get isOver(): boolean {
    return this.hasEnded;
  }

  /** Sets the timer that ends the run by force unless it ends before. */
  giveGrace(timer: Timer): void {
    this.graceTimer?.cancel();
    this.graceTimer = timer;
  }

  end(result: ExecutionResult): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.graceTimer?.cancel();
    this.onEnd(result);
  }
}
