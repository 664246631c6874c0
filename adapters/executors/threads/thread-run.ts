import type { RunOptions, RunSlot, TaskSurroundings } from '../../tasks/index.ts';
import { epochMs } from '../../clocks/epoch.ts';

/** What a run needs of the thread that it is on. */
export interface RunOwner {
  readonly surroundings: TaskSurroundings | undefined;
  /** Tells the pool. */
  slotChanged(run: ThreadRun, change: 'secede' | 'park' | 'rejoin'): void;
}

/** What a run in a thread is run with. Its signal is made when the task asks for it, or is aborted. */
export class ThreadRun implements RunOptions, RunSlot {
  readonly nowMs = epochMs;
  /** Whether it waits for others, so that the thread may begin the next run. */
  isParked = false;
  /** Called when it is parked. */
  onParked: (() => void) | undefined = undefined;
  private controller: AbortController | undefined = undefined;
  private rejoins: (() => void)[] | undefined = undefined;

  constructor(
    readonly number: number,
    private readonly owner: RunOwner,
    /** It has neither a turn nor a slot that it could give away. */
    private readonly isConcurrent = false,
  ) {
    this.isParked = isConcurrent;
  }

  get slot(): RunSlot {
    return this;
  }

  get surroundings(): TaskSurroundings | undefined {
    return this.owner.surroundings;
  }

  get signal(): AbortSignal {
    return (this.controller ??= new AbortController()).signal;
  }

  abort(): void {
    this.controller ??= new AbortController();
    this.controller.abort();
  }

  secede(): void {
    if (!this.isParked) this.owner.slotChanged(this, 'secede');
  }

  park(): void {
    if (this.isParked) return;
    this.isParked = true;
    this.owner.slotChanged(this, 'park');
    this.onParked?.();
  }

  rejoin(): Promise<void> {
    if (this.isConcurrent) return Promise.resolve();
    return new Promise((resolve) => {
      (this.rejoins ??= []).push(resolve);
      this.owner.slotChanged(this, 'rejoin');
    });
  }

  /** It has a slot again. */
  rejoined(): void {
    this.isParked = false;
    for (const resolve of this.rejoins?.splice(0) ?? []) resolve();
  }
}
