import { types } from 'node:util';
import { Deserializer, Serializer } from 'node:v8';

import {
  assemble,
  isInPieces,
  LARGE_PART_BYTES,
  type Layout,
  type Pieces,
  readLayout,
} from './byte-layout.ts';
import { ScatteredValue } from './scattered-value.ts';

/** Upper bound of the members of a value that are searched for large ArrayBuffers. */
const SEARCHED_MEMBERS_MAX = 32;

type View = NodeJS.ArrayBufferView;
type ViewMaker = new (buffer: ArrayBuffer, byteOffset: number, length: number) => View;

/** What a number in the bytes stands for; never to be reordered. */
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

const NUMBERS = new Map(VIEWS.map(([name], number) => [`[object ${name}]`, number]));

/** Writes one value, with its large binary parts apart. */
export class PiecesWriter {
  private readonly serializer = new ApartSerializer();

  constructor(private readonly value: unknown) {}

  /** @throws Error what V8 refuses */
  write(allocate: (nbytes: number) => Uint8Array): Uint8Array {
    const { serializer, value } = this;
    for (const buffer of largeBuffers(value)) serializer.setApart(buffer);
    const bufferCount = serializer.parts.length;
    serializer.writeHeader();
    serializer.writeValue(value);
    const { parts } = serializer;
    const head = serializer.releaseBuffer();
    return parts.length === 0 ? head : assemble({ head, parts, bufferCount }, allocate);
  }
}

/** Reads one value. */
export class PiecesReader {
  private readonly pieces: Pieces;
  /** Whether the parts belong to the reader and need not be copied. */
  private readonly isOwned: boolean;

  constructor(given: Uint8Array | ScatteredValue) {
    this.isOwned = given instanceof ScatteredValue && given.pieces !== undefined;
    this.pieces = piecesOf(given);
  }

  /** @throws Error when the bytes are of something else */
  read(): unknown {
    const { head, parts, bufferCount } = this.pieces;
    const deserializer = new ApartDeserializer(head, (index) => this.part(index));
    for (let index = 0; index < bufferCount; index++) {
      if (index >= parts.length) throw new RangeError('there are fewer parts than buffers');
      deserializer.transferArrayBuffer(index, this.part(index));
    }
    deserializer.readHeader();
    return deserializer.readValue() as unknown;
  }

  /** Copies a part into separate memory. */
  private part(index: number): ArrayBuffer {
    const part = this.pieces.parts[index];
    if (part === undefined) throw new RangeError(`there is no part ${index}`);
    return this.isOwned ? (part.buffer as ArrayBuffer) : copyOf(part);
  }
}

function piecesOf(given: Uint8Array | ScatteredValue): Pieces {
  if (given instanceof ScatteredValue && given.pieces !== undefined) return given.pieces;
  const bytes = given instanceof ScatteredValue ? given.bytes : given;
  if (!isInPieces(bytes)) return { head: bytes, parts: [], bufferCount: 0 };
  const layout: Layout | undefined = readLayout(bytes);
  if (layout?.nbytes !== bytes.byteLength) throw new RangeError('the bytes are cut off');
  const { headOffset, headBytes, parts, bufferCount } = layout;
  return {
    head: bytes.subarray(headOffset, headOffset + headBytes),
    parts: parts.map(({ offset, nbytes }) => bytes.subarray(offset, offset + nbytes)),
    bufferCount,
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
  // The names are Node's.
  declare _setTreatArrayBufferViewsAsHostObjects: (isHostObject: boolean) => void;
  declare _getDataCloneError: new (message: string) => Error;

  constructor() {
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
}

/** Gives every view separate memory. */
class ApartDeserializer extends Deserializer {
  constructor(
    head: Uint8Array,
    private readonly part: (index: number) => ArrayBuffer,
  ) {
    super(head);
  }

  _readHostObject(): View {
    const number = this.readUint32();
    const size = this.readUint32();
    if (number >= APART) return viewOf(this.part(size), number - APART);
    return viewOf(copyOf(this.readRawBytes(size)), number);
  }
}

function viewOf(buffer: ArrayBuffer, number: number): View {
  if (number === BUFFER) return Buffer.from(buffer);
  const kind = VIEWS[number];
  if (kind === undefined) throw new RangeError(`there is no kind ${number} of view`);
  const [, make, elementBytes] = kind;
  return new make(buffer, 0, buffer.byteLength / elementBytes);
}

function copyOf(bytes: Uint8Array): ArrayBuffer {
  const copy = new Uint8Array(bytes.byteLength);
  copy.set(bytes);
  return copy.buffer;
}
