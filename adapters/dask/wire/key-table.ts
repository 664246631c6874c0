import { YardmasterError } from '../../../core/api/index.ts';
import { PyFloat } from './codec.ts';

/** A key as it travels: a text, or (since 2023.9) a tuple, number or bytes. */
type WireKey = unknown;

/**
 * Keys as texts, which is what the scheduler knows. A text is its own; anything else becomes the text
 * that Python's `repr` gives, so that prefixes and groups are found in it, and is remembered here to be
 * sent as it came.
 */
export class KeyTable {
  private readonly values = new Map<string, WireKey>();
  /** Texts that were not in use at the last sweep. */
  private idle = new Set<string>();

  /**
   * @param isInUse - whether a task of this key exists; a text and a tuple that look the same cannot
   *   both be
   */
  constructor(private readonly isInUse: (text: string) => boolean) {}

  /** The number of actions that are remembered. */
  get size(): number {
    return this.values.size;
  }

  /**
   * The text of a key.
   * @throws YardmasterError `ERR_PROTOCOL` when it is no key, or another key has the same text
   */
  textOf(value: WireKey): string {
    if (typeof value === 'string') {
      if (this.values.size > 0 && this.values.has(value)) this.checkFree(value);
      return value;
    }
    const text = reprOf(value);
    if (this.values.has(text)) return text;
    if (this.isInUse(text)) throw collision(text);
    this.values.set(text, value);
    return text;
  }

  /** The texts of keys. @throws YardmasterError as {@link textOf}, also when it is no list */
  textsOf(values: unknown): string[] {
    if (typeof values === 'object' && values !== null && Symbol.iterator in values) {
      return Array.from(values as Iterable<unknown>, (value) => this.textOf(value));
    }
    throw new YardmasterError('ERR_PROTOCOL', `a list of keys was expected, not ${show(values)}`);
  }

  /** The key as it came. */
  wireOf(text: string): WireKey {
    if (this.values.size === 0) return text;
    return this.values.get(text) ?? text;
  }

  wiresOf(texts: readonly string[]): readonly WireKey[] {
    return this.values.size === 0 ? texts : texts.map((text) => this.wireOf(text));
  }

  /** Forgets what no task has had since the last sweep; messages about it have left long ago. */
  sweep(): void {
    const idle = new Set<string>();
    for (const text of this.values.keys()) {
      if (this.isInUse(text)) continue;
      if (this.idle.has(text)) this.values.delete(text);
      else idle.add(text);
    }
    this.idle = idle;
  }

  private checkFree(text: string): void {
    if (this.isInUse(text)) throw collision(text);
    this.values.delete(text);
  }
}

/**
 * As Python writes it: `('x', 0)`, `1.0`, `b'ab'`.
 * @throws YardmasterError `ERR_PROTOCOL` when it cannot be a key
 */
export function reprOf(value: unknown): string {
  if (typeof value === 'string') return reprOfText(value);
  if (Array.isArray(value)) {
    const inner = value.map(reprOf).join(', ');
    return value.length === 1 ? `(${inner},)` : `(${inner})`;
  }
  if (value instanceof PyFloat) return reprOfFloat(value.valueOf());
  if (typeof value === 'number') {
    return Number.isInteger(value) && !Object.is(value, -0) ? String(value) : reprOfFloat(value);
  }
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (value === null) return 'None';
  if (value instanceof Uint8Array) return `b${quote(Buffer.from(value).toString('latin1'), true)}`;
  throw new YardmasterError(
    'ERR_PROTOCOL',
    `${show(value)} cannot be the key of a task; keys are texts, numbers, bytes, and tuples of these`,
  );
}

function reprOfText(text: string): string {
  return isPlain(text) ? `'${text}'` : quote(text, false);
}

/** True when nothing in it has to be escaped. */
function isPlain(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code < 32 || code === 39 || code === 92 || code === 127) return false;
  }
  return true;
}

function quote(text: string, isBytes: boolean): string {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  let escaped = '';
  for (const character of text) {
    const code = character.charCodeAt(0);
    if (character === '\\' || character === mark) escaped += `\\${character}`;
    else if (character === '\n') escaped += '\\n';
    else if (character === '\r') escaped += '\\r';
    else if (character === '\t') escaped += '\\t';
    else if (code < 32 || code === 127 || (isBytes && code > 126)) {
      escaped += `\\x${code.toString(16).padStart(2, '0')}`;
    } else escaped += character;
  }
  return `${mark}${escaped}${mark}`;
}

function reprOfFloat(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  if (Object.is(value, -0)) return '-0.0';
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e16)) {
    return value.toExponential().replace(/e([+-])(\d)$/, 'e$10$2');
  }
  return Number.isInteger(value) ? `${value}.0` : String(value);
}

function collision(text: string): YardmasterError {
  return new YardmasterError(
    'ERR_GRAPH_INVALID',
    `there are two keys that read ${text}, one a text and one not; rename one of them`,
    { key: text },
  );
}

function show(value: unknown): string {
  return Object.prototype.toString.call(value).slice(8, -1);
}
