import { createHash } from 'node:crypto';

/** Where a term occurs: documents in ascending order, and how often in each. */
export interface Postings {
  readonly documents: Uint32Array;
  readonly counts: Uint32Array;
}

/**
 * Which terms occur in which documents, for some of the documents or some of the terms.
 * Flat arrays, because it travels between workers.
 */
export interface IndexPart {
  /** Terms in ascending order, one per line. */
  readonly terms: string;
  /** Postings of term k are those from `offsets[k]` to `offsets[k + 1]`. */
  readonly offsets: Uint32Array;
  readonly documents: Uint32Array;
  readonly counts: Uint32Array;
}

/** The index of a few documents. */
export function indexDocuments(
  documents: Iterable<readonly [number, readonly string[]]>,
): IndexPart {
  const postings = new Map<string, number[]>();
  for (const [document, words] of documents) {
    for (const word of words) {
      const flat = postings.get(word);
      // Pairs of document and count; the newest document is at the end.
      if (flat === undefined) postings.set(word, [document, 1]);
      else if (flat[flat.length - 2] === document) (flat[flat.length - 1] as number)++;
      else flat.push(document, 1);
    }
  }
  let count = 0;
  for (const flat of postings.values()) count += flat.length / 2;
  const writer = new PartWriter(count);
  for (const term of [...postings.keys()].sort()) {
    const flat = postings.get(term) as number[];
    for (let at = 0; at < flat.length; at += 2)
      writer.push(flat[at] as number, flat[at + 1] as number);
    writer.endTerm(term);
  }
  return writer.part();
}

/**
 * One index of several.
 *
 * @param parts - in the order of their documents
 * @param range - the terms that are wanted: neighbours, because terms are sorted. Default: all
 */
export function mergeParts(parts: readonly IndexPart[], range?: LetterRange): IndexPart {
  const cursors = parts.map((part) => new Cursor(part, range));
  const writer = new PartWriter(cursors.reduce((sum, cursor) => sum + cursor.leftCount, 0));
  for (;;) {
    let term: string | undefined;
    for (const { current } of cursors) {
      if (current !== undefined && (term === undefined || current < term)) term = current;
    }
    if (term === undefined) return writer.part();
    for (const cursor of cursors) {
      if (cursor.current !== term) continue;
      writer.copy(cursor);
      cursor.advance();
    }
    writer.endTerm(term);
  }
}

/** All terms of an index with their postings, ascending. */
export function* entriesOf(part: IndexPart): Iterable<readonly [term: string, Postings]> {
  const cursor = new Cursor(part);
  while (cursor.current !== undefined) {
    yield [cursor.current, cursor.postings()];
    cursor.advance();
  }
}

/** A fingerprint of terms and postings: equal exactly for equal indexes. */
export function digestOf(entries: Iterable<readonly [term: string, Postings]>): string {
  const hash = createHash('sha256');
  for (const [term, { documents, counts }] of entries) {
    hash.update(`${term}\n${documents.join()}\n${counts.join()}\n`);
  }
  return hash.digest('hex');
}

/** One of the ranges that the alphabet is split into, from 0. */
export interface LetterRange {
  readonly index: number;
  readonly of: number;
}

/** A term belongs to the range of its first letter. */
export function rangeOfTerm(term: string, ranges: number): number {
  return Math.floor(((term.charCodeAt(0) - 97) * ranges) / 26);
}

/** Reads an index, or the terms of one range, term by term. */
class Cursor {
  /** The term that it stands at; undefined at the end. */
  current: string | undefined;
  private readonly terms: readonly string[];
  private readonly endIndex: number;
  private index = 0;

  constructor(
    readonly part: IndexPart,
    range?: LetterRange,
  ) {
    this.terms = part.terms === '' ? [] : part.terms.split('\n');
    this.endIndex = this.terms.length;
    if (range !== undefined) {
      this.index = firstInRange(this.terms, range.index, range.of);
      this.endIndex = firstInRange(this.terms, range.index + 1, range.of);
    }
    this.current = this.index < this.endIndex ? this.terms[this.index] : undefined;
  }

  /** Where the postings of the term begin and end. */
  get start(): number {
    return this.part.offsets[this.index] as number;
  }

  get stop(): number {
    return this.part.offsets[this.index + 1] as number;
  }

  /** Postings of this and all further terms. */
  get leftCount(): number {
    return (this.part.offsets[this.endIndex] as number) - this.start;
  }

  advance(): void {
    this.index++;
    this.current = this.index < this.endIndex ? this.terms[this.index] : undefined;
  }

  postings(): Postings {
    const { start, stop } = this;
    const { documents, counts } = this.part;
    return { documents: documents.subarray(start, stop), counts: counts.subarray(start, stop) };
  }
}

/** Index of the first term of a range or of a later one. O(log terms). */
function firstInRange(terms: readonly string[], range: number, ranges: number): number {
  let low = 0;
  let high = terms.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rangeOfTerm(terms[middle] as string, ranges) < range) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Writes an index term by term. */
class PartWriter {
  private readonly terms: string[] = [];
  private readonly offsets: number[] = [0];
  private readonly documents: Uint32Array;
  private readonly counts: Uint32Array;
  private length = 0;

  /** @param postingCount - of all terms together */
  constructor(postingCount: number) {
    this.documents = new Uint32Array(postingCount);
    this.counts = new Uint32Array(postingCount);
  }

  push(document: number, count: number): void {
    this.documents[this.length] = document;
    this.counts[this.length++] = count;
  }

  /** The postings of the cursor's term. By a loop: most terms have too few for anything else. */
  copy({ part: { documents, counts }, start, stop }: Cursor): void {
    for (let at = start; at < stop; at++) this.push(documents[at] as number, counts[at] as number);
  }

  endTerm(term: string): void {
    this.terms.push(term);
    this.offsets.push(this.length);
  }

  part(): IndexPart {
    return {
      terms: this.terms.join('\n'),
      offsets: new Uint32Array(this.offsets),
      documents: this.documents,
      counts: this.counts,
    };
  }
}
