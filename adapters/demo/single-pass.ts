import { readWords } from './documents.ts';
import { digestOf, type Postings, rangeOfTerm } from './inverted-index.ts';
import { bestDocuments, scoreWords, tellingTerms } from './ranking.ts';
import type { Answer, Question } from './tasks.ts';

/** What the cluster must come to as well. */
export interface SinglePassResult {
  readonly answer: Answer;
  /** Fingerprint of each range of letters. */
  readonly digests: readonly string[];
  readonly termCount: number;
}

/** The same in one thread and in the plainest way: one Map, one document after the other. */
export function singlePass(
  paths: readonly string[],
  question: Question,
  ranges: number,
): SinglePassResult {
  const index = new Map<string, Map<number, number>>();
  paths.forEach((path, document) => {
    for (const word of readWords(path)) {
      const documents = index.get(word) ?? new Map<number, number>();
      index.set(word, documents);
      documents.set(document, (documents.get(document) ?? 0) + 1);
    }
  });
  const terms = [...index.keys()].sort();
  const entries: (readonly [string, Postings])[] = terms.map((term) => {
    const documents = index.get(term) as Map<number, number>;
    return [
      term,
      {
        documents: Uint32Array.from(documents.keys()),
        counts: Uint32Array.from(documents.values()),
      },
    ];
  });
  const { words, documentCount, documentLimit, termLimit } = question;
  const documents = bestDocuments(scoreWords(entries, words, documentCount), documentLimit);
  const matching = documents.map(({ item }) => item);
  return {
    answer: { documents, terms: tellingTerms(entries, matching, documentCount, termLimit) },
    digests: Array.from({ length: ranges }, (_, range) =>
      digestOf(entries.filter(([term]) => rangeOfTerm(term, ranges) === range)),
    ),
    termCount: terms.length,
  };
}
