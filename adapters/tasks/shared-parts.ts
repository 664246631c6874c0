import { YardmasterError } from '../../core/api/index.ts';
import { attachSharedMemory, sharedMemoryOf } from '../../core/util/shared-memory.ts';
import { fillIn, type Layout, readLayout, type SharedParts } from './byte-layout.ts';
import { refusalBytes } from './refusal.ts';

/** Number of the first shared ArrayBuffer in the bytes: it takes five bytes, as any that follows. */
export const FIRST_BARE_ID = 0xf000_0000;
/** Bits of the numbers of one attempt to write a value. */
const ATTEMPT_BITS = 16;
const COUNT_MAX = 2 ** ATTEMPT_BITS - 1;
/** What V8 writes before the number of a shared ArrayBuffer, and of one that was transferred. */
const SHARED_TAG = 0x75;
const TRANSFERRED_TAG = 0x74;
const ALIGNMENT = 8;

interface Stretch {
  start: number;
  end: number;
}

/** The shared memory of one value, and which stretch of each the value shows. */
export class SharedStretches implements SharedParts {
  readonly memories: SharedArrayBuffer[] = [];
  private readonly stretches = new Map<SharedArrayBuffer, Stretch>();
  private readonly bare = new Map<SharedArrayBuffer, number>();

  /** @param attempt - numbers differ from attempt to attempt */
  constructor(private readonly attempt: number) {}

  get isBare(): boolean {
    return this.bare.size > 0;
  }

  get starts(): Float64Array {
    return Float64Array.from(this.stretches.values(), ({ start }) => start);
  }

  get sizes(): number[] {
    return Array.from(this.stretches.values(), ({ start, end }) => end - start);
  }

  /** The value has a view of the memory. @returns the position of the memory in `memories` */
  addView(memory: SharedArrayBuffer, byteOffset: number, byteLength: number): number {
    const index = this.indexOf(memory);
    const stretch = this.stretches.get(memory) as Stretch;
    const start = byteOffset - (byteOffset % ALIGNMENT);
    const isFirst = stretch.end < 0;
    stretch.start = isFirst ? start : Math.min(stretch.start, start);
    stretch.end = Math.max(stretch.end, byteOffset + byteLength);
    return index;
  }

  /** It stands in the value by itself. @returns the number to be written */
  addBare(memory: SharedArrayBuffer): number {
    const index = this.addView(memory, 0, memory.byteLength);
    const id = FIRST_BARE_ID + (this.attempt << ATTEMPT_BITS) + index;
    this.bare.set(memory, index);
    return id;
  }

  /**
   * Has V8 read the shared ArrayBuffers as transferred ones, because Node's deserializer takes no others.
   * @returns false when other bytes of the value look the same: nothing is changed then
   */
  markBare(head: Uint8Array): boolean {
    const bytes = Buffer.from(head.buffer, head.byteOffset, head.byteLength);
    const places: [at: number, index: number][] = [];
    for (const index of this.bare.values()) {
      const id = FIRST_BARE_ID + (this.attempt << ATTEMPT_BITS) + index;
      const pattern = Buffer.from([SHARED_TAG, ...varint(id)]);
      const at = bytes.indexOf(pattern);
      if (at < 0 || bytes.indexOf(pattern, at + 1) >= 0) return false;
      places.push([at, index]);
    }
    for (const [at, index] of places) {
      bytes.set([TRANSFERRED_TAG, ...varint(FIRST_BARE_ID + index)], at);
    }
    return true;
  }

  private indexOf(memory: SharedArrayBuffer): number {
    if (this.stretches.has(memory)) return this.memories.indexOf(memory);
    if (this.memories.length >= COUNT_MAX) throw new RangeError('too many shared memories');
    this.stretches.set(memory, { start: 0, end: -1 });
    return this.memories.push(memory) - 1;
  }
}

/**
 * Says which shared memory serialised bytes refer to, where they were written or have arrived from another thread.
 * @returns the bytes
 */
export function withSharedMemory(
  bytes: Uint8Array,
  memories: readonly SharedArrayBuffer[] | undefined,
): Uint8Array {
  if (memories === undefined) return bytes;
  const layout = readLayout(bytes) as Layout;
  attachSharedMemory(bytes, {
    memories,
    nbytes: layout.nbytes,
    copy: () => copied(bytes, layout, memories),
  });
  return bytes;
}

/** What the bytes refer to, to be posted with them; undefined: nothing. */
export function memoriesOf(bytes: Uint8Array): readonly SharedArrayBuffer[] | undefined {
  return sharedMemoryOf(bytes)?.memories;
}

function copied(
  bytes: Uint8Array,
  layout: Layout,
  memories: readonly SharedArrayBuffer[],
): Uint8Array {
  if (layout.isBare) return refusalBytes(bareRefused());
  const starts = startsIn(layout, bytes);
  const sizes = layout.parts.slice(layout.parts.length - memories.length);
  const shared = memories.map(
    (memory, index) => new Uint8Array(memory, starts[index], sizes[index]?.nbytes),
  );
  return fillIn(bytes, layout, shared);
}

/** Where the stretches of shared memory begin. */
function startsIn({ parts, sharedCount }: Layout, bytes: Uint8Array): Float64Array {
  const { offset, nbytes } = parts[parts.length - sharedCount - 1] as Layout['parts'][number];
  return readStarts(bytes.subarray(offset, offset + nbytes));
}

/** @param part - the one before those of shared memory */
export function readStarts(part: Uint8Array): Float64Array {
  return new Float64Array(Uint8Array.from(part).buffer);
}

function bareRefused(): YardmasterError {
  const kind = 'a SharedArrayBuffer';
  return new YardmasterError(
    'ERR_NOT_SERIALISABLE',
    `the value has ${kind}, which only threads of one process can share, and was read in another process; use a typed array over it, which arrives there as a copy, or keep both tasks on one worker`,
    { kind },
  );
}

/** As V8 writes a number. */
function varint(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...bytes, rest];
    bytes.push((rest % 128) + 128);
  }
}
