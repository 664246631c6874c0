/**
 * How a task key names its prefix (the operation) and its group (the collection).
 *
 * Source: Dask's `key_split` and `key_split_group`, for keys that are texts; `test/core/state/data` has a table
 * of what the real functions answer. Lengths are in code points, as in Python.
 */

const HASH = /^[a-f0-9]{32}$/;
const LETTER_FIRST = /^\p{L}/u;
const LETTERS = /^\p{L}+$/u;
/** A word of this many letters that begins with one of `a` to `f` counts as a hash. */
const HASH_WORD_LENGTH = 8;
const DASH = 45;
const ZERO = 48;
const NINE = 57;
/** Name of what cannot be read. */
const OTHER = 'Other';

/** `('random-a1b2c3', 0)` → `random`; `inc-ab31c0…` → `inc`; anything unreadable → `Other`. */
export function prefixOfKey(key: string): string {
  const plain = plainName(key);
  if (plain !== undefined) return plain;
  const words = key.split('-');
  const head = words[0] as string;
  if (head === '') return OTHER;
  let name = LETTER_FIRST.test(head) ? head : strip(head.split(',')[0] as string, '_\'()"');
  for (let index = 1; index < words.length; index++) {
    const word = words[index] as string;
    if (!LETTERS.test(word) || isHashWord(word)) break;
    name += `-${word}`;
  }
  if (HASH.test(name)) return 'data';
  if (name === '') return OTHER;
  return name.startsWith('<') ? nameOfObject(name) : name;
}

/** `('random-a1b2c3', 0)` → `random-a1b2c3`; a plain key's group is its prefix. */
export function groupOfKey(key: string): string {
  if (key.startsWith('(')) return strip(key.split(',')[0] as string, '()"\'');
  if (HASH.test(key)) return 'data';
  return key.startsWith('<') ? nameOfObject(key) : prefixOfKey(key);
}

/** The common cases `name-123` and `name-ab31c0…`, without regular expressions. */
function plainName(key: string): string | undefined {
  const dash = key.indexOf('-');
  if (dash < 1 || dash === 32 || !isAsciiLetter(key.charCodeAt(0))) return undefined;
  return isNameEnd(key, dash) ? key.slice(0, dash) : undefined;
}

/** Whether there is a dash, and a digit in the word behind it, so that the name ends here. Looks at ASCII alone. */
export function isNameEnd(key: string, dash: number): boolean {
  if (key.charCodeAt(dash) !== DASH) return false;
  for (let index = dash + 1; index < key.length; index++) {
    const code = key.charCodeAt(index);
    if (code >= ZERO && code <= NINE) return true;
    if (!isAsciiLetter(code)) return false;
  }
  return false;
}

function isAsciiLetter(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 65 && code <= 90);
}

/** Dask looks at the first letter only, so `download` counts as one, too. */
function isHashWord(word: string): boolean {
  return word >= 'a' && word < 'g' && Array.from(word).length === HASH_WORD_LENGTH;
}

/** `<module.submodule.myclass object at 0xdaf372` → `myclass`. */
function nameOfObject(text: string): string {
  const word = firstWord(strip(text, '<>'));
  return word === '' ? OTHER : (word.split('.').at(-1) as string);
}

function strip(text: string, characters: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && characters.includes(text.charAt(start))) start++;
  while (end > start && characters.includes(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}

function firstWord(text: string): string {
  let start = 0;
  while (start < text.length && isSpace(text, start)) start++;
  let end = start;
  while (end < text.length && !isSpace(text, end)) end++;
  return text.slice(start, end);
}

/** What Python's `str.split` takes for space: also four control characters, and no byte order mark. */
function isSpace(text: string, index: number): boolean {
  const code = text.charCodeAt(index);
  if (code >= 0x1c && code <= 0x20) return true;
  return code === 0x85 || (code !== 0xfeff && /\s/.test(text.charAt(index)));
}
