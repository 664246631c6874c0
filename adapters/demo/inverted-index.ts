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
  const writer = new PartWriter();
  for (const term of [...postings.keys()].sort()) {
    const flat = postings.get(term) as number[];
    for (let at = 0; at < flat.length; at += 2)
      writer.push(flat[at] as number, flat[at + 1] as number);
    writer.endTerm(term);
  }
  return writer.part();
}

/**
 * One index of several, with the terms of one letter range.
 *
 * @param parts - in the order of their documents
 * @param isWanted - whether a term belongs to the range
 */
export function mergeParts(
  parts: readonly IndexPart[],
  isWanted: (term: string) => boolean,
): IndexPart {
  const cursors = parts.map((part) => new Cursor(part));
  const writer = new PartWriter();
  for (;;) {
    let term: string | undefined;
    for (const { current } of cursors) {
      if (current !== undefined && (term === undefined || current < term)) term = current;
    }
    if (term === undefined) return writer.part();
    const wanted = isWanted(term);
    for (const cursor of cursors) {
      if (cursor.current !== term) continue;
      if (wanted) writer.pushAll(cursor.postings());
      cursor.advance();
    }
    if (wanted) writer.endTerm(term);
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

/** Splits the alphabet into ranges of letters; a term belongs to the range of its first letter. */
export function rangeOfTerm(term: string, ranges: number): number {
  return Math.floor(((term.charCodeAt(0) - 97) * ranges) / 26);
}

/** Reads an index term by term. */
class Cursor {
  private readonly terms: readonly string[];
  private index = 0;

  constructor(private readonly part: IndexPart) {
    this.terms = part.terms === '' ? [] : part.terms.split('\n');
  }

  get current(): string | undefined {
    return this.terms[this.index];
  }

  advance(): void {
    this.index++;
  }

  postings(): Postings {
    const { offsets, documents, counts } = this.part;
    const start = offsets[this.index];
    const stop = offsets[this.index + 1];
    return { documents: documents.subarray(start, stop), counts: counts.subarray(start, stop) };
  }
}

/** Writes an index term by term. */
class PartWriter {
  private readonly terms: string[] = [];
  private readonly offsets: number[] = [0];
  private readonly documents: number[] = [];
  private readonly counts: number[] = [];

  push(document: number, count: number): void {
    this.documents.push(document);
    this.counts.push(count);
  }

  pushAll({ documents, counts }: Postings): void {
    for (let at = 0; at < documents.length; at++) {
      this.push(documents[at] as number, counts[at] as number);
    }
  }

  endTerm(term: string): void {
    this.terms.push(term);
    this.offsets.push(this.documents.length);
  }

  part(): IndexPart {
    return {
      terms: this.terms.join('\n'),
      offsets: Uint32Array.from(this.offsets),
      documents: Uint32Array.from(this.documents),
      counts: Uint32Array.from(this.counts),
    };
  }
}
