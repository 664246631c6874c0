/**
 * Numbers, short texts, booleans, null, undefined, and short lists of these in a few bytes. V8's
 * serialisation, which all else goes through, costs microseconds for each value, however small. What
 * goes through it begins with other bytes (`byte-layout.ts`).
 */
const UNDEFINED = 32;
const NULL = 33;
const TRUE = 34;
const FALSE = 35;
const INT32 = 36;
const FLOAT64 = 37;
/** Followed by the length, in one byte. Characters of one byte each: Latin-1. */
const TEXT = 38;
/** Plus the number of items. */
const LIST = 48;
const LIST_LENGTH_MAX = 8;

const TEXT_LENGTH_MAX = 64;
const BYTES_MAX = 1 + LIST_LENGTH_MAX * (TEXT_LENGTH_MAX + 2);
const LATIN1_MAX = 0xff;

const memory = new Uint8Array(BYTES_MAX);
const view = new DataView(memory.buffer);

/** The bytes of a small value; undefined for any other. */
export function writeSmall(value: unknown): Uint8Array | undefined {
  const end = Array.isArray(value) ? writeList(value) : writeItem(value, 0);
  return end < 0 ? undefined : memory.slice(0, end);
}

/** Whether these are bytes of `writeSmall`. */
export function isSmall(bytes: Uint8Array): boolean {
  const [first = 255] = bytes;
  return first >= UNDEFINED && first <= LIST + LIST_LENGTH_MAX;
}

/** @throws RangeError when the bytes end too early or too late, or are not in this format */
export function readSmall(bytes: Uint8Array): unknown {
  const reader = new SmallReader(bytes);
  const value = reader.read();
  reader.end();
  return value;
}

/** Where it ends; -1 when it is not small. */
function writeList(list: readonly unknown[]): number {
  const { length } = list;
  if (length > LIST_LENGTH_MAX || Object.getPrototypeOf(list) !== Array.prototype) return -1;
  // Other properties than items would be lost.
  if (Object.keys(list).length !== length) return -1;
  memory[0] = LIST + length;
  let end = 1;
  for (const item of list) {
    end = writeItem(item, end);
    if (end < 0) return -1;
  }
  return end;
}

function writeItem(value: unknown, at: number): number {
  if (typeof value === 'number') return writeNumber(value, at);
  if (typeof value === 'string') return writeText(value, at);
  const kind = constantOf(value);
  memory[at] = kind;
  return kind < 0 ? -1 : at + 1;
}

function constantOf(value: unknown): number {
  if (value === undefined) return UNDEFINED;
  if (value === null) return NULL;
  if (value === true) return TRUE;
  return value === false ? FALSE : -1;
}

function writeNumber(value: number, at: number): number {
  if ((value | 0) === value && !Object.is(value, -0)) {
    memory[at] = INT32;
    view.setInt32(at + 1, value, true);
    return at + 5;
  }
  memory[at] = FLOAT64;
  view.setFloat64(at + 1, value, true);
  return at + 9;
}

function writeText(text: string, at: number): number {
  const { length } = text;
  if (length > TEXT_LENGTH_MAX) return -1;
  memory[at] = TEXT;
  memory[at + 1] = length;
  for (let index = 0; index < length; index++) {
    const code = text.charCodeAt(index);
    if (code > LATIN1_MAX) return -1;
    memory[at + 2 + index] = code;
  }
  return at + 2 + length;
}

class SmallReader {
  private at = 0;

  constructor(private readonly bytes: Uint8Array) {}

  read(): unknown {
    const kind = this.byte();
    if (kind < LIST) return this.item(kind);
    if (kind > LIST + LIST_LENGTH_MAX) throw broken();
    const list: unknown[] = [];
    for (let left = kind - LIST; left > 0; left--) list.push(this.item(this.byte()));
    return list;
  }

  end(): void {
    if (this.at !== this.bytes.length) throw broken();
  }

  private item(kind: number): unknown {
    switch (kind) {
      case UNDEFINED:
        return undefined;
      case NULL:
        return null;
      case TRUE:
        return true;
      case FALSE:
        return false;
      case INT32:
        return this.byte() | (this.byte() << 8) | (this.byte() << 16) | (this.byte() << 24);
      case FLOAT64:
        for (let index = 0; index < 8; index++) memory[index] = this.byte();
        return view.getFloat64(0, true);
      case TEXT:
        return this.text(this.byte());
      default:
        throw broken();
    }
  }

  private text(length: number): string {
    let text = '';
    for (let left = length; left > 0; left--) text += String.fromCharCode(this.byte());
    return text;
  }

  private byte(): number {
    const byte = this.bytes[this.at++];
    if (byte === undefined) throw broken();
    return byte;
  }
}

function broken(): RangeError {
  return new RangeError('the bytes of a small value do not fit its kind');
}
