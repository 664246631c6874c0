/** What a digest continues from. */
export type DigestLanes = readonly [low: number, high: number];

/**
 * A rolling hash of numbers and texts, to compare two runs. 64 bits in two lanes; not for secrets.
 * The same sequence of calls gives the same digest on every machine.
 */
export class Digest {
  private low = 0x2545f491;
  private high = 0x4f6cdd1d;

  /** As it is, to continue from there. */
  get lanes(): DigestLanes {
    return [this.low, this.high];
  }
  set lanes([low, high]: DigestLanes) {
    this.low = low | 0;
    this.high = high | 0;
  }

  /** Any number, infinities included. */
  add(value: number): void {
    if ((value | 0) === value) {
      this.mix(value | 0);
      return;
    }
    FLOAT[0] = value;
    this.mix(WORDS[0] as number);
    this.mix(WORDS[1] as number);
  }

  /** A text, with its length, so that neighbouring texts cannot run into each other. */
  addText(text: string): void {
    const { length } = text;
    this.mix(length);
    // As `mix` for each character, with the lanes in registers: most of what a recording hashes is keys.
    let { low, high } = this;
    for (let index = 0; index < length; index++) {
      const word = text.charCodeAt(index);
      low = Math.imul(low ^ word, 0x9e3779b1);
      low ^= low >>> 15;
      high = (Math.imul((high << 7) | (high >>> 25), 5) + (word ^ low)) | 0;
    }
    this.low = low;
    this.high = high;
  }

  /** An unsigned number of 32 bits. */
  get word(): number {
    return finish(this.low ^ this.high) >>> 0;
  }

  /** Sixteen hexadecimal digits. */
  toString(): string {
    return hex(finish(this.high)) + hex(finish(this.low));
  }

  private mix(word: number): void {
    this.low = Math.imul(this.low ^ word, 0x9e3779b1);
    this.low ^= this.low >>> 15;
    this.high = Math.imul((this.high << 7) | (this.high >>> 25), 5) + (word ^ this.low);
    this.high |= 0;
  }
}

const FLOAT = new Float64Array(1);
const WORDS = new Int32Array(FLOAT.buffer);

function finish(lane: number): number {
  const mixed = Math.imul(lane ^ (lane >>> 16), 0x85ebca6b);
  return mixed ^ (mixed >>> 13);
}

function hex(lane: number): string {
  return (lane >>> 0).toString(16).padStart(8, '0');
}
