/**
 * How a task key names its prefix (the operation) and its group (the collection).
 *
 * Source: Dask's `key_split` and `key_split_group`.
 */

const HASH_LENGTH = 32;

/** `"('random-a1b2c3', 0)"` → `random`; `inc-ab31c0…` → `inc`; anything unreadable → `Other`. */
export function prefixOfKey(key: string): string {
  if (key.startsWith('(')) return prefixOfKey(firstTupleElement(key));
  return splitWords(key);
}

/** `"('random-a1b2c3', 0)"` → `random-a1b2c3`; a plain key's group is its prefix. */
export function groupOfKey(key: string): string {
  if (key.startsWith('(')) return firstTupleElement(key);
  return splitWords(key);
}

function firstTupleElement(key: string): string {
  const comma = key.indexOf(',');
  const head = comma < 0 ? key : key.slice(0, comma);
  return strip(head, '()"\' ');
}

function splitWords(key: string): string {
  if (key.length === HASH_LENGTH && isHex(key)) return 'data';
  if (key.startsWith('<')) return lastDottedName(key);
  const plain = plainName(key);
  if (plain !== undefined) return plain;
  const words = key.split('-');
  const head = words[0] as string;
  let name = startsWithLetter(head) ? head : strip(head.split(',')[0] as string, '_\'()"');
  for (let index = 1; index < words.length; index++) {
    const word = words[index] as string;
    if (!isAlphabetic(word) || (word.length === 8 && isHex(word))) break;
    name += `-${word}`;
  }
  if (name === '' || isNumeric(name)) return 'Other';
  if (name.length === HASH_LENGTH && isHex(name)) return 'data';
  return name;
}

/** The common case `name-123`, without regular expressions. */
function plainName(key: string): string | undefined {
  const dash = key.indexOf('-');
  if (dash < 1 || !isAsciiLetter(key.charCodeAt(0))) return undefined;
  const next = key.charCodeAt(dash + 1);
  return next >= 48 && next <= 57 ? key.slice(0, dash) : undefined;
}

function isAsciiLetter(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 65 && code <= 90);
}

function lastDottedName(key: string): string {
  const word = strip(key, '<>').split(' ')[0] as string;
  return word.split('.').at(-1) as string;
}

function strip(text: string, characters: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && characters.includes(text.charAt(start))) start++;
  while (end > start && characters.includes(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}

function startsWithLetter(text: string): boolean {
  return /^\p{L}/u.test(text);
}

function isAlphabetic(text: string): boolean {
  return /^\p{L}+$/u.test(text);
}

function isHex(text: string): boolean {
  return /^[0-9a-f]+$/i.test(text);
}

function isNumeric(text: string): boolean {
  return /^\d+$/.test(text);
}
