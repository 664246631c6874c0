/**
 * MinHash (Broder 1997): texts that share most of their phrases have fingerprints that agree in most places. A fingerprint
 * keeps the lowest byte of each minimum (Li and König 2010), which is enough to compare two of them.
 */

/** Bytes of a fingerprint: one for each hash function. */
export const FINGERPRINT_BYTES = 256;
/** Words of a phrase. */
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
