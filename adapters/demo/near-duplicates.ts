import { createHash } from 'node:crypto';
import { type Document, readWords } from './documents.ts';
import { FINGERPRINT_BYTES, fingerprintOf } from './fingerprint.ts';

/** Fingerprints of some documents, in the order of their numbers. */
export interface Fingerprints {
  readonly documents: Uint32Array;
  /** One fingerprint after the other. */
  readonly bytes: Uint8Array;
}

/** Some of the bands that fingerprints are cut into. */
export interface BandRange {
  readonly first: number;
  readonly count: number;
}

/** Of each link: two documents, and the number of bytes in which their fingerprints agree. */
export type Links = Uint32Array;
const LINK_LENGTH = 3;

/** Documents that repeat each other. */
export interface Family {
  /** In ascending order. */
  readonly documents: readonly number[];
  /** Share of their phrases that linked members have in common, at least. */
  readonly similarity: number;
}

/** The findings of the demo. */
export interface NearDuplicates {
  /** Documents that are long enough to be compared. */
  readonly compared: number;
  /** The largest family first. */
  readonly families: readonly Family[];
  /** Of all fingerprints: equal exactly for equal ones. */
  readonly digest: string;
}

const BAND_BYTES = 8;
/** Of a pair with 80 % of its phrases in common, one of 32 bands of 8 bytes agrees in 99.7 % of all cases. */
export const BAND_COUNT = FINGERPRINT_BYTES / BAND_BYTES;
/** Share of common phrases from which on documents count as near-duplicates. */
const SIMILARITY_MIN = 0.8;

/** The same in one thread and in the plainest way: one document after the other, then all bands. */
export function singlePass(documents: readonly Document[]): NearDuplicates {
  const paths = documents.map(({ path }) => path);
  const all = fingerprintFiles(paths, 0);
  return findFamilies([linkDocuments(all, { first: 0, count: BAND_COUNT })], all);
}

/** Reads a few files; the first has document number `first`. Those that are too short are left out. */
export function fingerprintFiles(paths: readonly string[], first: number): Fingerprints {
  const parts: Fingerprints[] = [];
  for (const [index, path] of paths.entries()) {
    const bytes = fingerprintOf(readWords(path));
    if (bytes !== undefined) parts.push({ documents: Uint32Array.of(first + index), bytes });
  }
  return joinFingerprints(parts);
}

/** @param parts - in the order of their documents */
export function joinFingerprints(parts: readonly Fingerprints[]): Fingerprints {
  const count = parts.reduce((sum, { documents }) => sum + documents.length, 0);
  const documents = new Uint32Array(count);
  const bytes = new Uint8Array(count * FINGERPRINT_BYTES);
  let index = 0;
  for (const part of parts) {
    documents.set(part.documents, index);
    bytes.set(part.bytes, index * FINGERPRINT_BYTES);
    index += part.documents.length;
  }
  return { documents, bytes };
}

/**
 * Compares each document with the first one that agrees with it in a whole band (locality-sensitive hashing), and links
 * those that are similar. O(documents × bands).
 */
export function linkDocuments({ documents, bytes }: Fingerprints, range: BandRange): Links {
  const table = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const agreements = new Map<number, number>();
  for (let band = range.first; band < range.first + range.count; band++) {
    const firstWith = new Map<string, number>();
    for (let index = 0; index < documents.length; index++) {
      const start = index * FINGERPRINT_BYTES + band * BAND_BYTES;
      const content = table.toString('latin1', start, start + BAND_BYTES);
      const other = firstWith.get(content);
      if (other === undefined) {
        firstWith.set(content, index);
        continue;
      }
      const pair = other * documents.length + index;
      if (!agreements.has(pair)) agreements.set(pair, agreement(bytes, other, index));
    }
  }
  const links: number[] = [];
  for (const [pair, agreeing] of agreements) {
    if (agreeing < SIMILARITY_MIN * FINGERPRINT_BYTES) continue;
    const other = Math.floor(pair / documents.length);
    const index = pair % documents.length;
    links.push(documents[other] as number, documents[index] as number, agreeing);
  }
  return Uint32Array.from(links);
}

/** The groups of documents that links connect. */
export function findFamilies(
  links: readonly Links[],
  { documents, bytes }: Fingerprints,
): NearDuplicates {
  const parents = Uint32Array.from({ length: (documents.at(-1) ?? -1) + 1 }, (_, at) => at);
  const founderOf = (document: number): number => {
    let founder = document;
    while (parents[founder] !== founder) founder = parents[founder] as number;
    parents[document] = founder;
    return founder;
  };
  for (const [a, b] of eachLink(links)) {
    const [first, second] = [founderOf(a), founderOf(b)];
    parents[Math.max(first, second)] = Math.min(first, second);
  }
  const least = new Map<number, number>();
  for (const [a, , agreeing] of eachLink(links)) {
    const founder = founderOf(a);
    least.set(founder, Math.min(agreeing, least.get(founder) ?? agreeing));
  }
  const members = new Map<number, number[]>([...least.keys()].map((founder) => [founder, []]));
  for (const document of documents) members.get(founderOf(document))?.push(document);
  const families = [...members].map(([founder, list]) => ({
    documents: list,
    similarity: (least.get(founder) as number) / FINGERPRINT_BYTES,
  }));
  families.sort((a, b) => b.documents.length - a.documents.length || first(a) - first(b));
  const digest = createHash('sha256').update(bytes).digest('hex');
  return { compared: documents.length, families, digest };
}

const first = ({ documents }: Family): number => documents[0] as number;

function* eachLink(links: readonly Links[]): Iterable<readonly [number, number, number]> {
  for (const flat of links) {
    for (let at = 0; at < flat.length; at += LINK_LENGTH) {
      yield [flat[at] as number, flat[at + 1] as number, flat[at + 2] as number];
    }
  }
}

/** Bytes that are the same in two fingerprints. */
function agreement(bytes: Uint8Array, one: number, other: number): number {
  const [a, b] = [one * FINGERPRINT_BYTES, other * FINGERPRINT_BYTES];
  let count = 0;
  for (let k = 0; k < FINGERPRINT_BYTES; k++) if (bytes[a + k] === bytes[b + k]) count++;
  return count;
}
