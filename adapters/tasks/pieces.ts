import { types } from 'node:util';
import { Deserializer, Serializer } from 'node:v8';
import {
  assemble,
  FIRST_BARE_ID,
  isInPieces,
  isReferring,
  LARGE_PART_BYTES,
  type Layout,
  memoriesOf,
  type Pieces,
  readLayout,
  readStarts,
  SharedStretches,
  withSharedMemory,
} from './small-values.ts';

/** Upper bound of the members of a value that are searched for large ArrayBuffers. */
const SEARCHED_MEMBERS_MAX = 32;

type View = NodeJS.ArrayBufferView;
type ViewMaker = new (buffer: ArrayBufferLike, byteOffset: number, length: number) => View;

/** Attempts to write shared memory with numbers that occur nowhere else in the value. */
const ATTEMPTS_MAX = 64;

/** The views that the numbers in the bytes stand for; never to be reordered. */
const VIEWS: readonly (readonly [name: string, make: ViewMaker, elementBytes: number])[] = [
  ['Int8Array', Int8Array, 1],
  ['Uint8Array', Uint8Array, 1],
  ['Uint8ClampedArray', Uint8ClampedArray, 1],
  ['Int16Array', Int16Array, 2],
  ['Uint16Array', Uint16Array, 2],
  ['Int32Array', Int32Array, 4],
  ['Uint32Array', Uint32Array, 4],
  ['Float32Array', Float32Array, 4],
  ['Float64Array', Float64Array, 8],
  ['DataView', DataView, 1],
  ['BigInt64Array', BigInt64Array, 8],
  ['BigUint64Array', BigUint64Array, 8],
];
const BUFFER = VIEWS.length;
/** Added to the type number of a view whose bytes are a separate part. */
const APART = 64;
/** Added to the type number of a view of shared memory, which is not copied. */
const SHARED = 128;

const NUMBERS = new Map(VIEWS.map(([name], number) => [`[object ${name}]`, number]));

/** Writes one value, with its large binary parts apart. */
export class PiecesWriter {
  /** @param isSharing - whether the bytes may refer to shared memory; else views of it are copied */
  constructor(
    private readonly value: unknown,
    private readonly isSharing: boolean,
  ) {}

  /** @throws Error what V8 refuses */
  write(allocate: (nbytes: number) => Uint8Array): Uint8Array {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const bytes = this.attempt(attempt, allocate);
      if (bytes !== undefined) return bytes;
    }
    throw new RangeError('the value looks like numbers of shared memory');
  }

  /** Undefined: bytes of the value look like the numbers that this attempt gave to shared memory. */
  private attempt(
    attempt: number,
    allocate: (nbytes: number) => Uint8Array,
  ): Uint8Array | undefined {
    const { value, isSharing } = this;
    const serializer = new ApartSerializer(isSharing ? attempt : undefined);
    for (const buffer of largeBuffers(value)) serializer.setApart(buffer);
    const bufferCount = serializer.parts.length;
    serializer.writeHeader();
    serializer.writeValue(value);
    const { parts, shared } = serializer;
    const head = serializer.releaseBuffer();
    if (shared === undefined) {
      return parts.length === 0 ? head : assemble({ head, parts, bufferCount }, allocate);
    }
    if (!shared.markBare(head)) return undefined;
    parts.push(new Uint8Array(shared.starts.buffer));
    const bytes = assemble({ head, parts, bufferCount }, allocate, shared);
    return withSharedMemory(bytes, shared.memories);
  }
}

export class PiecesReader {
  private readonly pieces: Pieces;
  /** True when the parts belong to the reader and need not be copied. */
  private readonly isOwned: boolean;
  /** Of a value that refers to shared memory. */
  private readonly memories: readonly SharedArrayBuffer[] | undefined;
  /** Of a value that contains copies of what was shared. */
  private readonly copies = new Map<number, ArrayBuffer>();
  private starts: Float64Array | undefined;

  constructor(given: Uint8Array | ScatteredValue) {
    this.isOwned = given instanceof ScatteredValue && given.pieces !== undefined;
    this.pieces = piecesOf(given);
    this.memories = given instanceof Uint8Array ? memoriesOf(given) : undefined;
  }

  /** @throws Error when the bytes are of something else */
  read(): unknown {
    const { head, parts, bufferCount } = this.pieces;
    const deserializer = new ApartDeserializer(
      head,
      (index) => this.part(index),
      (index) => this.shared(index),
    );
    this.memories?.forEach((memory, index) => {
      // The declaration does not know that it takes shared ones as well.
      deserializer.transferArrayBuffer(FIRST_BARE_ID + index, memory as unknown as ArrayBuffer);
    });
    for (let index = 0; index < bufferCount; index++) {
      if (index >= parts.length) throw new RangeError('there are fewer parts than buffers');
      deserializer.transferArrayBuffer(index, this.part(index));
    }
    deserializer.readHeader();
    return deserializer.readValue() as unknown;
  }

  /** Memory that is shared, or a copy of it, and where in the original that begins. */
  private shared(index: number): SharedPart {
    const memory = this.memories?.[index];
    if (memory !== undefined) return { memory, start: 0 };
    const { parts, sharedCount = 0 } = this.pieces;
    const first = parts.length - sharedCount;
    const starts = parts[first - 1];
    if (index >= sharedCount || starts === undefined) {
      throw new RangeError('it refers to shared memory that has not come with it');
    }
    this.starts ??= readStarts(starts);
    const copy = this.copies.get(index) ?? this.part(first + index);
    this.copies.set(index, copy);
    return { memory: copy, start: this.starts[index] ?? 0 };
  }

  /** Copies a part into separate memory. */
  private part(index: number): ArrayBuffer {
    const part = this.pieces.parts[index];
    if (part === undefined) throw new RangeError(`there is no part ${index}`);
    return this.isOwned ? (part.buffer as ArrayBuffer) : copyOf(part);
  }
}

interface SharedPart {
  readonly memory: ArrayBufferLike;
  readonly start: number;
}

function piecesOf(given: Uint8Array | ScatteredValue): Pieces {
  if (given instanceof ScatteredValue && given.pieces !== undefined) return given.pieces;
  const bytes = given instanceof ScatteredValue ? given.bytes : given;
  if (!isInPieces(bytes)) return { head: bytes, parts: [], bufferCount: 0 };
  const layout: Layout | undefined = readLayout(bytes);
  const isWhole = !isReferring(bytes);
  if (layout?.[isWhole ? 'nbytes' : 'ownBytes'] !== bytes.byteLength) {
    throw new RangeError('the bytes are cut off');
  }
  const { headOffset, headBytes, parts, bufferCount, sharedCount } = layout;
  const present = isWhole ? parts : parts.slice(0, parts.length - sharedCount);
  return {
    head: bytes.subarray(headOffset, headOffset + headBytes),
    parts: present.map(({ offset, nbytes }) => bytes.subarray(offset, offset + nbytes)),
    bufferCount,
    sharedCount: isWhole ? sharedCount : 0,
  };
}

/** ArrayBuffers, which V8 would copy several times, that are easy to find. */
function largeBuffers(value: unknown): Set<ArrayBuffer> {
  const found = new Set<ArrayBuffer>();
  const look = (member: unknown): void => {
    if (types.isArrayBuffer(member) && member.byteLength >= LARGE_PART_BYTES) found.add(member);
  };
  look(value);
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return found;
  if (Array.isArray(value)) {
    if (value.length <= SEARCHED_MEMBERS_MAX) value.forEach(look);
    return found;
  }
  let count = 0;
  for (const name in value) {
    if (++count > SEARCHED_MEMBERS_MAX) break;
    // Not through a getter: it is V8 that calls it, once.
    look(Object.getOwnPropertyDescriptor(value, name)?.value);
  }
  return found;
}

/** Node's own serializer of views may show more of their buffers than the views do. */
class ApartSerializer extends Serializer {
  readonly parts: Uint8Array[] = [];
  /** Undefined: there is none, or views of it are copied. */
  shared: SharedStretches | undefined;
  // The names are Node's.
  declare _setTreatArrayBufferViewsAsHostObjects: (isHostObject: boolean) => void;
  declare _getDataCloneError: new (message: string) => Error;

  /** @param attempt - to refer to shared memory; undefined: it is copied */
  constructor(private readonly attempt: number | undefined) {
    super();
    this._setTreatArrayBufferViewsAsHostObjects(true);
  }

  setApart(buffer: ArrayBuffer): void {
    this.transferArrayBuffer(this.parts.length, buffer);
    this.parts.push(new Uint8Array(buffer));
  }

  _writeHostObject(view: View): void {
    const number = Buffer.isBuffer(view)
      ? BUFFER
      : NUMBERS.get(Object.prototype.toString.call(view));
    if (number === undefined) throw new this._getDataCloneError('an unknown kind of view');
    const { buffer, byteOffset, byteLength } = view;
    const shared = this.sharedStretches(buffer);
    if (shared !== undefined) {
      this.writeUint32(number + SHARED);
      this.writeUint32(shared.addView(buffer as SharedArrayBuffer, byteOffset, byteLength));
      this.writeDouble(byteOffset);
      this.writeDouble(byteLength);
      return;
    }
    const bytes = new Uint8Array(buffer, byteOffset, byteLength);
    if (byteLength >= LARGE_PART_BYTES) {
      this.writeUint32(number + APART);
      this.writeUint32(this.parts.length);
      this.parts.push(bytes);
      return;
    }
    this.writeUint32(number);
    this.writeUint32(byteLength);
    this.writeRawBytes(bytes);
  }

  _getSharedArrayBufferId(memory: SharedArrayBuffer): number {
    const shared = this.sharedStretches(memory);
    if (shared !== undefined) return shared.addBare(memory);
    throw new this._getDataCloneError('a SharedArrayBuffer');
  }

  private sharedStretches(buffer: ArrayBufferLike): SharedStretches | undefined {
    if (this.attempt === undefined || !types.isSharedArrayBuffer(buffer)) return undefined;
    return (this.shared ??= new SharedStretches(this.attempt));
  }
}

/** Gives every view separate memory, unless it is one of shared memory. */
class ApartDeserializer extends Deserializer {
  constructor(
    head: Uint8Array,
    private readonly part: (index: number) => ArrayBuffer,
    private readonly shared: (index: number) => SharedPart,
  ) {
    super(head);
  }

  _readHostObject(): View {
    const number = this.readUint32();
    const size = this.readUint32();
    if (number >= SHARED) {
      const { memory, start } = this.shared(size);
      return viewOf(memory, number - SHARED, this.readDouble() - start, this.readDouble());
    }
    if (number >= APART) return viewOf(this.part(size), number - APART);
    return viewOf(copyOf(this.readRawBytes(size)), number);
  }
}

function viewOf(
  buffer: ArrayBufferLike,
  number: number,
  byteOffset = 0,
  byteLength = buffer.byteLength,
): View {
  if (number === BUFFER) return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength);
  const kind = VIEWS[number];
  if (kind === undefined) throw new RangeError(`there is no kind ${number} of view`);
  const [, make, elementBytes] = kind;
  return new make(buffer, byteOffset, byteLength / elementBytes);
}

function copyOf(bytes: Uint8Array): ArrayBuffer {
  const copy = new Uint8Array(bytes.byteLength);
  copy.set(bytes);
  return copy.buffer;
}

/** A stretch of the bytes, and where it goes. */
interface Region {
  readonly start: number;
  readonly target: Uint8Array;
}

/**
 * Collects the bytes of a serialised value as they arrive, each large binary part in separate
 * memory, which then becomes part of the value. So the value is never in memory twice.
 */
export class ScatteredValue {
  /** Undefined: it lies in one piece. */
  private regions: readonly Region[] | undefined;
  private whole: Uint8Array | undefined;
  private collected: Pieces | undefined;

  /** @param byteLength - of the whole value */
  constructor(readonly byteLength: number) {}

  /** Set when the value came in pieces; everything must have arrived. */
  get pieces(): Pieces | undefined {
    return this.collected;
  }

  /** The value in one piece, if it came so. */
  get bytes(): Uint8Array {
    return this.whole ?? new Uint8Array(0);
  }

  /**
   * Takes some bytes; they have to come in their order.
   * @throws RangeError when there is no memory for it
   */
  set(bytes: Uint8Array, at: number): void {
    if (at === 0) this.begin(bytes);
    this.whole?.set(bytes, at);
    const end = at + bytes.byteLength;
    for (const { start, target } of this.regions ?? []) {
      const from = Math.max(at, start);
      const to = Math.min(end, start + target.byteLength);
      if (from < to) target.set(bytes.subarray(from - at, to - at), from - start);
    }
  }

  private begin(start: Uint8Array): void {
    const layout = isInPieces(start) ? readLayout(start) : undefined;
    if (layout?.nbytes !== this.byteLength) {
      this.whole = new Uint8Array(this.byteLength); // In one piece, or of very many.
      return;
    }
    const head = new Uint8Array(layout.headBytes);
    const parts = layout.parts.map(({ nbytes }) => new Uint8Array(nbytes));
    const { bufferCount, sharedCount } = layout;
    this.collected = { head, parts, bufferCount, sharedCount };
    this.regions = [
      { start: layout.headOffset, target: head },
      ...layout.parts.map(({ offset }, index) => ({
        start: offset,
        target: parts[index] as Uint8Array,
      })),
    ];
  }
}
