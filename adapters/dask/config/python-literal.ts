/** Returned by a reader that finds something else than a literal. */
const NOT_A_LITERAL = Symbol('not a literal');

const WORDS: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['None', null],
  ['True', true],
  ['False', false],
]);

/** What Dask reads as YAML words too, in any case. */
const LENIENT: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['none', null],
  ['null', null],
  ['true', true],
  ['false', false],
]);

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '\n': '' };
const NUMBER =
  /^[+-]?(?:0[xX][\da-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)/;

/**
 * The value of an environment variable as Dask reads it: a literal of Python (`None`, `True`, numbers,
 * quoted texts, lists, tuples, sets, dictionaries), and any other text as it stands.
 * Source of the rule: `dask.config.interpret_value`.
 */
export function parsePythonValue(text: string): unknown {
  const reader = new LiteralReader(text.trim());
  const value = reader.readAll();
  if (value !== NOT_A_LITERAL) return value;
  const lenient = LENIENT.get(text.toLowerCase());
  return lenient === undefined ? text : lenient;
}

/** Reads one literal from left to right. */
class LiteralReader {
  private at = 0;

  constructor(private readonly text: string) {}

  /** The literal that the whole text is, or `NOT_A_LITERAL`. */
  readAll(): unknown {
    const value = this.read();
    this.skipBlanks();
    return this.at === this.text.length ? value : NOT_A_LITERAL;
  }

  private read(): unknown {
    this.skipBlanks();
    const first = this.text.charAt(this.at);
    if (first === '"' || first === "'") return this.readText(first);
    if (first === '[') return this.readItems(']');
    if (first === '(') return this.readTuple();
    if (first === '{') return this.readBraces();
    const rest = this.text.slice(this.at);
    const word = /^[A-Za-z_]\w*/.exec(rest)?.[0];
    if (word !== undefined) {
      this.at += word.length;
      return WORDS.has(word) ? WORDS.get(word) : NOT_A_LITERAL;
    }
    return this.readNumber(rest);
  }

  private readNumber(rest: string): unknown {
    const number = NUMBER.exec(rest)?.[0];
    if (number === undefined || number.endsWith('_')) return NOT_A_LITERAL;
    this.at += number.length;
    const plain = number.replaceAll('_', '');
    const sign = plain.startsWith('-') ? -1 : 1;
    const digits = plain.replace(/^[+-]/, '');
    // Python refuses integers with leading zeros, such as 007.
    if (/^0\d+$/.test(digits) && !/^0+$/.test(digits)) return NOT_A_LITERAL;
    return sign * Number(digits);
  }

  private readText(quote: string): unknown {
    let value = '';
    for (this.at++; this.at < this.text.length; this.at++) {
      const character = this.text.charAt(this.at);
      if (character === quote) {
        this.at++;
        return value;
      }
      if (character !== '\\') value += character;
      else {
        const escaped = this.text.charAt(++this.at);
        if (escaped === '\\' || escaped === '"' || escaped === "'") value += escaped;
        else value += ESCAPES[escaped] ?? `\\${escaped}`;
      }
    }
    return NOT_A_LITERAL;
  }

  /** Items up to the closing bracket; a comma may follow the last one. */
  private readItems(close: string): unknown {
    const items: unknown[] = [];
    this.at++;
    for (;;) {
      if (this.takes(close)) return items;
      const item = this.read();
      if (item === NOT_A_LITERAL) return NOT_A_LITERAL;
      items.push(item);
      if (this.takes(',')) continue;
      return this.takes(close) ? items : NOT_A_LITERAL;
    }
  }

  /** A tuple is a list here; parentheses around one value without a comma are only parentheses. */
  private readTuple(): unknown {
    const start = this.at;
    const items = this.readItems(')');
    if (!Array.isArray(items) || items.length !== 1) return items;
    return /,\s*\)$/.test(this.text.slice(start, this.at)) ? items : (items[0] as unknown);
  }

  /** A dictionary, or a set as a list. */
  private readBraces(): unknown {
    const start = this.at;
    const entries: Record<string, unknown> = {};
    this.at++;
    for (;;) {
      if (this.takes('}')) return entries;
      const key = this.read();
      if (key === NOT_A_LITERAL) return NOT_A_LITERAL;
      if (!this.takes(':')) {
        this.at = start;
        return this.readItems('}');
      }
      const value = this.read();
      if (value === NOT_A_LITERAL) return NOT_A_LITERAL;
      Object.defineProperty(entries, String(key), {
        value,
        enumerable: true,
        configurable: true,
        writable: true,
      });
      if (this.takes(',')) continue;
      return this.takes('}') ? entries : NOT_A_LITERAL;
    }
  }

  private takes(character: string): boolean {
    this.skipBlanks();
    if (this.text.charAt(this.at) !== character) return false;
    this.at++;
    return true;
  }

  private skipBlanks(): void {
    while (/\s/.test(this.text.charAt(this.at))) this.at++;
  }
}
