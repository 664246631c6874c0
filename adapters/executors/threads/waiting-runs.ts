import type { Job, SlotState } from './job.ts';

/** The runs of a thread that have waited for others: those that wait, and those that continue. */
export class WaitingRuns {
  private readonly byNumber = new Map<number, Job>();
  private resumed = 0;
  private seceded = 0;

  get size(): number {
    return this.byNumber.size;
  }

  /** Runs that may compute: with a slot, or seceded. */
  get resumedCount(): number {
    return this.resumed;
  }

  get secededCount(): number {
    return this.seceded;
  }

  jobs(): Iterable<Job> {
    return this.byNumber.values();
  }

  has(job: Job): boolean {
    return this.byNumber.get(job.number) === job;
  }

  get(number: number): Job | undefined {
    return this.byNumber.get(number);
  }

  add(job: Job): void {
    this.byNumber.set(job.number, job);
    this.count(job, 1);
  }

  /** Removes a run. */
  take(number: number): Job | undefined {
    const job = this.byNumber.get(number);
    if (job === undefined) return undefined;
    this.count(job, -1);
    this.byNumber.delete(number);
    return job;
  }

  /** Changes the state of a run, whether it is here or not. */
  setState(job: Job, state: SlotState): void {
    const isHere = this.has(job);
    if (isHere) this.count(job, -1);
    job.slotState = state;
    if (isHere) this.count(job, 1);
  }

  clear(): void {
    this.byNumber.clear();
    this.resumed = 0;
    this.seceded = 0;
  }

  private count({ slotState }: Job, change: 1 | -1): void {
    if (slotState !== 'parked') this.resumed += change;
    if (slotState === 'seceded') this.seceded += change;
  }
}
