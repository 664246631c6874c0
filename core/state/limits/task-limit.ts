/** Of tasks with this limit, at most so many run at the same time, in the whole cluster. Written by `TaskLimits` alone. */
export class TaskLimit {
  /** Tasks with this limit that are not forgotten. */
  taskCount = 0;
  /** Those that are processing, and runs of them that were taken back and may not have ended. */
  runningCount = 0;
  /** Those in `queued`: they wait for this limit. */
  queuedCount = 0;

  constructor(
    readonly name: string,
    /** As the last submission that named it says. */
    public max: number,
  ) {}

  get hasRoom(): boolean {
    return this.runningCount < this.max;
  }

  /** Whether a task that is ready has to wait: there is no room, or others came before it. */
  get holdsBack(): boolean {
    return !this.hasRoom || this.queuedCount > 0;
  }
}
