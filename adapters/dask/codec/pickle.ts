/** What the small pickle writer can write. */
export type PickleValue =
  string | number | boolean | null | Uint8Array | readonly PickleValue[] | PickleCall;

/** A call that makes an object when it is read: `module.name(...args)`. */
export class PickleCall {
  constructor(
    readonly module: string,
    readonly name: string,
    readonly args: readonly PickleValue[],
    /** Attributes that the object gets then. */
    readonly attributes?: Readonly<Record<string, PickleValue>>,
  ) {}
}

/**
 * A pickle of protocol 2, which every Python 3 reads. Arrays become tuples; integral numbers that fit
 * 32 bits ints, other numbers floats; byte arrays `bytes`.
 */
export function pickle(value: PickleValue): Uint8Array {
  const parts: (Uint8Array | string)[] = [];
  write(value, parts);
  const chunks = parts.map((part) =>
    typeof part === 'string' ? Buffer.from(part, 'latin1') : part,
  );
  const { buffer, byteOffset, byteLength } = Buffer.concat([PROTOCOL_2, ...chunks, STOP]);
  return new Uint8Array(buffer, byteOffset, byteLength);
}

const PROTOCOL_2 = Buffer.from([0x80, 2]);
const STOP = Buffer.from('.');

function write(value: PickleValue, parts: (Uint8Array | string)[]): void {
  if (value === null) parts.push('N');
  else if (typeof value === 'boolean') parts.push(value ? '\x88' : '\x89');
  else if (typeof value === 'string') writeText(value, parts);
  else if (typeof value === 'number') writeNumber(value, parts);
  else if (value instanceof PickleCall) {
    parts.push(`c${value.module}\n${value.name}\n`);
    writeTuple(value.args, parts);
    parts.push('R');
    if (value.attributes !== undefined) writeAttributes(value.attributes, parts);
  } else if (value instanceof Uint8Array) {
    // Protocol 2 has no type for bytes; Python itself writes them in this form.
    write(
      new PickleCall('_codecs', 'encode', [Buffer.from(value).toString('latin1'), 'latin1']),
      parts,
    );
  } else writeTuple(value, parts);
}

function writeAttributes(
  attributes: Readonly<Record<string, PickleValue>>,
  parts: (Uint8Array | string)[],
): void {
  parts.push('}(');
  for (const [name, value] of Object.entries(attributes)) {
    write(name, parts);
    write(value, parts);
  }
  parts.push('ub');
}

function writeTuple(values: readonly PickleValue[], parts: (Uint8Array | string)[]): void {
  parts.push('(');
  for (const value of values) write(value, parts);
  parts.push('t');
}

function writeText(text: string, parts: (Uint8Array | string)[]): void {
  const bytes = Buffer.from(text, 'utf8');
  const header = Buffer.alloc(5);
  header[0] = 0x58;
  header.writeUInt32LE(bytes.length, 1);
  parts.push(header, bytes);
}

function writeNumber(value: number, parts: (Uint8Array | string)[]): void {
  const isInt = Number.isInteger(value) && Math.abs(value) < 2 ** 31 && !Object.is(value, -0);
  const bytes = Buffer.alloc(isInt ? 5 : 9);
  bytes[0] = isInt ? 0x4a : 0x47;
  if (isInt) bytes.writeInt32LE(value, 1);
  else bytes.writeDoubleBE(value, 1);
  parts.push(bytes);
}
