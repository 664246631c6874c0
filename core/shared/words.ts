/** Words and values as messages show them. */
import { distance } from 'fastest-levenshtein';

/** Longer words are no misspelt names, and comparing them takes time that grows with their length. */
const WORD_LENGTH_MAX = 100;

/** The known name that `word` was probably meant to be; also one whose end was left out or added, as in `memoryLimit` and `logger`. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  if (known.length === 0 || word.length > WORD_LENGTH_MAX) return undefined;
  const simple = simplify(word);
  let found: string | undefined;
  let least = Math.max(2, Math.floor(simple.length / 3)) + 1;
  for (const candidate of known) {
    const other = simplify(candidate);
    // Of two that are as near, the one with the same first letter: that is rarely the wrong one.
    const far = distance(simple, other) + (other.startsWith(simple.slice(0, 1)) ? 0 : 0.5);
    if (far >= least) continue;
    least = far;
    found = candidate;
  }
  const isPart = (part: string, whole: string): boolean =>
    part.length > 2 && whole.startsWith(part);
  return found ?? known.find((name) => isPart(word, name) || isPart(name, word));
}

/** `; did you mean "x"?`, or nothing. */
export function hint(word: string, known: readonly string[]): string {
  const found = nearest(word, known);
  return found === undefined ? '' : `; did you mean "${found}"?`;
}

/** Values that are looked at to show a structure. */
const SHOWN_VALUES_MAX = 100;

/** A value as a message shows it: short, one line. Takes no longer for a large value. */
export function show(value: unknown): string {
  if (typeof value === 'function') return `function ${value.name || '(anonymous)'}`;
  if (typeof value === 'number' || typeof value === 'bigint') return String(value);
  if (value === undefined) return 'nothing';
  let text: string | undefined;
  try {
    let count = 0;
    text = JSON.stringify(value, (_, part: unknown) => {
      if (++count > SHOWN_VALUES_MAX) return undefined;
      return shortened(part);
    });
  } catch {
    text = undefined; // It refers to itself, or is of a kind that JSON does not have.
  }
  text ??= Object.prototype.toString.call(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

function shortened(part: unknown): unknown {
  if (typeof part === 'string') return part.slice(0, WORD_LENGTH_MAX);
  if (Array.isArray(part)) return part.slice(0, SHOWN_VALUES_MAX);
  return part instanceof Uint8Array ? `${part.byteLength} bytes` : part;
}

/** Dask spells keys with dashes; that is no difference worth a distance. */
function simplify(word: string): string {
  return word.toLowerCase().replaceAll(/[-_]/g, '');
}
