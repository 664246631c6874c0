import { gunzipSync } from 'node:zlib';

/**
 * MinHash (Broder 1997): texts that share most of their phrases have fingerprints that agree in most places. A fingerprint
 * keeps the lowest byte of each minimum (Li and König 2010), which is enough to compare two of them.
 */

/** Bytes of a fingerprint: one for each hash function. */
export const FINGERPRINT_BYTES = 256;
const PHRASE_WORDS = 4;
/** Shorter texts repeat each other by chance. */
const TEXT_WORDS_MIN = 20;

const INT32_MAX = 2 ** 31 - 1;
const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;
/** 2^32 divided by the golden ratio. */
const STEP = 0x9e3779b9;

/** Hash function k of a phrase with hash h is `MULTIPLIERS[k] * h + ADDENDS[k]`, modulo 2^32. */
const MULTIPLIERS = Int32Array.from({ length: FINGERPRINT_BYTES }, (_, k) => mix(2 * k + 1) | 1);
const ADDENDS = Int32Array.from({ length: FINGERPRINT_BYTES }, (_, k) => mix(2 * k + 2));

/** The fingerprint of a text; undefined when it is too short for one. O(words × hash functions). */
export function fingerprintOf(words: readonly string[]): Uint8Array | undefined {
  if (words.length < TEXT_WORDS_MIN) return undefined;
  const phrases = hashPhrases(words);
  const fingerprint = new Uint8Array(FINGERPRINT_BYTES);
  for (let k = 0; k < FINGERPRINT_BYTES; k++) {
    const [multiplier, addend] = [MULTIPLIERS[k] as number, ADDENDS[k] as number];
    let minimum = INT32_MAX;
    for (let at = 0; at < phrases.length; at++) {
      const hash = (Math.imul(phrases[at] as number, multiplier) + addend) | 0;
      if (hash < minimum) minimum = hash;
    }
    fingerprint[k] = minimum;
  }
  return fingerprint;
}

/** A hash of each few words that follow each other. */
function hashPhrases(words: readonly string[]): Int32Array {
  const hashes = words.map(hashWord);
  const phrases = new Int32Array(words.length - PHRASE_WORDS + 1);
  for (let start = 0; start < phrases.length; start++) {
    let phrase = 0;
    for (let at = start; at < start + PHRASE_WORDS; at++) {
      phrase = Math.imul(phrase, STEP) + (hashes[at] as number);
    }
    phrases[start] = mix(phrase);
  }
  return phrases;
}

/** FNV-1a. */
function hashWord(word: string): number {
  let hash = FNV_OFFSET;
  for (let at = 0; at < word.length; at++) {
    hash = Math.imul(hash ^ word.charCodeAt(at), FNV_PRIME);
  }
  return hash;
}

/** Scatters neighbouring numbers over all of 32 bits. */
function mix(value: number): number {
  let mixed = Math.imul(value, STEP);
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
  return mixed ^ (mixed >>> 15);
}

/** The words of a document that an index knows: lower case, three letters or more. */
export function wordsOf(text: string): readonly string[] {
  return text.toLowerCase().match(/[a-z][a-z0-9]{2,24}/g) ?? [];
}

/** The text of a file: unpacked when it is a `.gz`, and without markup when it is a manual page. */
export function textOf(path: string, content: Uint8Array): string {
  const bytes = path.endsWith('.gz') ? unpack(content) : content;
  const text = Buffer.from(bytes).toString('utf8');
  return isManualPage(path) ? stripRoff(text) : text;
}

/** The readable part of a manual page: no requests, comments, fonts and escapes. */
export function stripRoff(source: string): string {
  const lines: string[] = [];
  for (const line of source.split('\n')) {
    // Requests without text: definitions, conditions, layout. A comment begins with \" .
    if (
      /^[.'](?:\\"|ds|de|if|ie|el|nr|so|ta|in|ti|sp|ne|nh|ad|hy|tr|rm)\b|^[.']\\"|^\.\.$/.test(line)
    ) {
      continue;
    }
    lines.push(line.replace(/^[.']\s*[A-Za-z]{1,3}\b/, ''));
  }
  return lines
    .join('\n')
    .replace(/\\".*$/gm, '')
    .replace(/\\f(?:\[[^\]]*\]|\(..|.)/g, '')
    .replace(/\\[*n](?:\[[^\]]*\]|\(..|.)/g, ' ')
    .replace(/\\\((?:..)/g, ' ')
    .replace(/\\s[+-]?\d+/g, '')
    .replace(/\\[&|^/,:]/g, '')
    .replace(/\\-/g, '-')
    .replace(/\\./g, ' ');
}

function isManualPage(path: string): boolean {
  return /\.[1-9][a-z0-9]*(?:\.gz)?$/i.test(path);
}

/** A damaged archive counts as an empty document: the index is about what can be read. */
function unpack(content: Uint8Array): Uint8Array {
  try {
    return gunzipSync(content);
  } catch {
    return new Uint8Array(0);
  }
}
