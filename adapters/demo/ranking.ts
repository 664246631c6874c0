import type { Postings } from './inverted-index.ts';
import { isStopWord } from './stop-words.ts';

/** What one word of the query contributes to the documents that hold it. */
export interface WordScores {
  readonly word: string;
  readonly documents: Uint32Array;
  readonly scores: Float64Array;
}

/** Something with its weight: a term, or the number of a document. */
export interface Weighted<T> {
  readonly item: T;
  readonly weight: number;
}

type Entries = Iterable<readonly [term: string, Postings]>;

/** TF-IDF with a logarithm of the count: what one occurrence says, and how rare the term is. */
function weightOf(count: number, documentsWithTerm: number, documentCount: number): number {
  return (1 + Math.log(count)) * Math.log(documentCount / documentsWithTerm);
}

/** The words of the query that these entries hold, in the order of the entries. */
export function scoreWords(
  entries: Entries,
  words: readonly string[],
  documentCount: number,
): WordScores[] {
  const wanted = new Set(words);
  const found: WordScores[] = [];
  for (const [word, { documents, counts }] of entries) {
    if (!wanted.has(word)) continue;
    const scores = Float64Array.from(counts, (count) =>
      weightOf(count, documents.length, documentCount),
    );
    found.push({ word, documents: documents.slice(), scores });
  }
  return found;
}

/**
 * The documents that match best. Sums are taken word by word in ascending order, so that they are
 * the same however the words were spread.
 */
export function bestDocuments(scored: readonly WordScores[], limit: number): Weighted<number>[] {
  const sums = new Map<number, number>();
  const ascending = [...scored].sort((a, b) => (a.word < b.word ? -1 : 1));
  for (const { documents, scores } of ascending) {
    documents.forEach((document, at) => {
      sums.set(document, (sums.get(document) ?? 0) + (scores[at] as number));
    });
  }
  const all = [...sums].map(([item, weight]) => ({ item, weight }));
  return all.sort((a, b) => b.weight - a.weight || a.item - b.item).slice(0, limit);
}

/**
 * The most characteristic terms of these documents: those with the largest sum of weights there. Words that stand in
 * every text are none.
 */
export function tellingTerms(
  entries: Entries,
  documents: readonly number[],
  documentCount: number,
  limit: number,
): Weighted<string>[] {
  const matching = new Set(documents);
  const all: Weighted<string>[] = [];
  for (const [term, postings] of entries) {
    if (isStopWord(term)) continue;
    let weight = 0;
    for (let at = 0; at < postings.documents.length; at++) {
      if (!matching.has(postings.documents[at] as number)) continue;
      weight += weightOf(postings.counts[at] as number, postings.documents.length, documentCount);
    }
    if (weight > 0) all.push({ item: term, weight });
  }
  return heaviest(all, limit);
}

/** The heaviest terms; equal weights in alphabetical order. */
export function heaviest(terms: readonly Weighted<string>[], limit: number): Weighted<string>[] {
  return [...terms]
    .sort((a, b) => b.weight - a.weight || (a.item < b.item ? -1 : 1))
    .slice(0, limit);
}
