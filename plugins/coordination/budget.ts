import { refused } from './errors.ts';

/** What one entry (a name, an item, a waiting call) is taken to occupy beside its texts and values. */
const ENTRY_BYTES = 256;

/** Bytes that an entry with these texts occupies, roughly. */
export function entryBytes(...texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + 2 * text.length, ENTRY_BYTES);
}

/** Memory that all of coordination may occupy together. */
export class Budget {
  private used = 0;

  constructor(private readonly limitBytes: number) {}

  get usedBytes(): number {
    return this.used;
  }

  /**
   * @param what - for people: `an item for the queue "q"`
   * @throws YardmasterError `ERR_COORDINATION` when the limit would be exceeded; then nothing is
   *   charged
   */
  charge(nbytes: number, what: string): void {
    if (this.used + nbytes > this.limitBytes) {
      throw refused(
        'full',
        `there is no space for ${what} (${nbytes} bytes): coordination uses ${this.used} of ${this.limitBytes} bytes on the scheduler; put large values into tasks and hand their futures over, or raise scheduler.coordination.memoryLimit`,
        { nbytes, usedBytes: this.used, limitBytes: this.limitBytes },
      );
    }
    this.used += nbytes;
  }

  free(nbytes: number): void {
    this.used -= nbytes;
  }
}
