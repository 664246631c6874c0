/** The functions that workers of the demo run. */
import { defineTasks } from '../tasks/index.ts';
import { readWords } from './documents.ts';
import {
  digestOf,
  entriesOf,
  indexDocuments,
  type IndexPart,
  type LetterRange,
  mergeParts,
} from './inverted-index.ts';
import {
  bestDocuments,
  heaviest,
  scoreWords,
  tellingTerms,
  type Weighted,
  type WordScores,
} from './ranking.ts';

/** What is asked of the index. */
export interface Question {
  readonly words: readonly string[];
  readonly documentCount: number;
  /** Documents that count as matching. */
  readonly documentLimit: number;
  readonly termLimit: number;
}

/** What the demo prints. */
export interface Answer {
  readonly documents: readonly Weighted<number>[];
  readonly terms: readonly Weighted<string>[];
}

export const { indexChunk, mergeIndexes, scoreQuery, matchDocuments, findTerms, answer, digest } =
  defineTasks(import.meta.url, {
    /** Reads and indexes a few files; the first has document number `first`. */
    indexChunk(paths: readonly string[], first: number): IndexPart {
      return indexDocuments(paths.map((path, index) => [first + index, readWords(path)] as const));
    },

    /** One index of several; with a range, of its terms alone. */
    mergeIndexes(parts: readonly IndexPart[], range: LetterRange | undefined): IndexPart {
      return mergeParts(parts, range);
    },

    scoreQuery(part: IndexPart, { words, documentCount }: Question): WordScores[] {
      return scoreWords(entriesOf(part), words, documentCount);
    },

    matchDocuments(
      scored: readonly WordScores[][],
      { documentLimit }: Question,
    ): Weighted<number>[] {
      return bestDocuments(scored.flat(), documentLimit);
    },

    findTerms(
      part: IndexPart,
      matching: readonly Weighted<number>[],
      { documentCount, termLimit }: Question,
    ): Weighted<string>[] {
      const documents = matching.map(({ item }) => item);
      return tellingTerms(entriesOf(part), documents, documentCount, termLimit);
    },

    answer(
      terms: readonly Weighted<string>[][],
      documents: readonly Weighted<number>[],
      { termLimit }: Question,
    ): Answer {
      return { documents, terms: heaviest(terms.flat(), termLimit) };
    },

    /** A fingerprint of a whole range of the index, to compare it without moving it. */
    digest(part: IndexPart): string {
      return digestOf(entriesOf(part));
    },
  });
