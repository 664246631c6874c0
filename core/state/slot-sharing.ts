/** Tasks of one slot, by how short they are. Few steps, so that noise does not move them. */
const STEPS = [1, 4, 16, 64, 256] as const;
/** Finished tasks of a kind before anything is concluded from them. */
const SAMPLES_MIN = 8;
/** Weight of a new sample. */
const WEIGHT = 1 / 8;
/** Results of the tasks in one slot are expected to stay below this, so that queuing keeps memory low. */
const SHARED_BYTES_MAX = 1024 * 1024;
/** A step is left downwards only when its limits are exceeded by this factor. */
const SLACK = 2;

/**
 * How many tasks of a kind count as one against the slots of a worker. A slot holds one task as long as
 * nothing is known, or as long as tasks or results are not small. Where they are, the way to the
 * worker and back takes longer than the task, and a worker with one per slot would mostly wait.
 */
export class SlotSharing {
  private samples = 0;
  private averageS = 0;
  private averageBytes = 0;
  private step = 0;

  /** @param slotWorkS - seconds of work for one slot; 0: one task for each */
  constructor(private readonly slotWorkS: number) {}

  get tasksPerSlot(): number {
    return STEPS[this.step] as number;
  }

  /** Records the duration and the output of a task. Returns whether the answer has changed. */
  learn(seconds: number, nbytes: number): boolean {
    if (this.slotWorkS === 0) return false;
    const weight = this.samples === 0 ? 1 : WEIGHT;
    this.samples++;
    this.averageS += weight * (seconds - this.averageS);
    this.averageBytes += weight * (nbytes - this.averageBytes);
    if (this.samples < SAMPLES_MIN) return false;
    if (this.step > 0 && !this.fits(this.step, SLACK)) this.step--;
    else if (this.step < STEPS.length - 1 && this.fits(this.step + 1, 1)) this.step++;
    else return false;
    return true;
  }

  /** What it has learnt: samples, average seconds and bytes, step. */
  get learnt(): readonly number[] {
    return [this.samples, this.averageS, this.averageBytes, this.step];
  }
  set learnt([samples = 0, averageS = 0, averageBytes = 0, step = 0]: readonly number[]) {
    this.samples = samples;
    this.averageS = averageS;
    this.averageBytes = averageBytes;
    this.step = Math.min(step, STEPS.length - 1);
  }

  private fits(step: number, slack: number): boolean {
    const tasks = STEPS[step] as number;
    const isShort = tasks * this.averageS <= slack * this.slotWorkS;
    return isShort && tasks * this.averageBytes <= slack * SHARED_BYTES_MAX;
  }
}
