import { YardmasterError } from '../../../core/api/index.ts';
import { type Corpus, type Cut, findCorpus, type Question } from '../../demo/index.ts';

/**
 * A few milliseconds of work for each of hundreds of tasks. With fewer files the indexes that tasks hand
 * over, and merge level by level, cost more than making them: with 3 twice as much CPU as one thread needs.
 */
export const CUT: Cut = { filesPerTask: 12, fanIn: 8, ranges: 4 };
const DOCUMENT_LIMIT = 50;
const TERM_LIMIT = 10;

/** Flags of `demo`. */
export interface DemoFlags {
  readonly config?: string;
  readonly path?: string;
  readonly workers: number;
  readonly threads: number;
  readonly query: string;
  readonly limitFiles: number;
  /** Kills of workers; true: a few. */
  readonly chaos?: number | true;
  /** Kills of the scheduler; true: a few. */
  readonly chaosScheduler?: number | true;
  readonly seed?: number;
  /** False: no worker is killed at half time. */
  readonly kill?: boolean;
  /** Path of the report. */
  readonly report?: string;
  /** Path of a recording. */
  readonly record?: string;
}

/**
 * Finds the text, and says how much there is.
 * @throws YardmasterError `ERR_CONFIG` when there is no text, or no word in the question
 */
export function findWork({ path, limitFiles, query }: DemoFlags): {
  readonly corpus: Corpus;
  readonly question: Question;
} {
  const corpus = findCorpus(path, limitFiles);
  const question: Question = {
    words: wordsOfQuery(query),
    documentCount: corpus.paths.length,
    documentLimit: DOCUMENT_LIMIT,
    termLimit: TERM_LIMIT,
  };
  print(`Text       ${corpus.paths.length} of ${corpus.found} files in ${corpus.folder}`);
  return { corpus, question };
}

/** A line of what is found, on standard output. */
export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function wordsOfQuery(query: string): string[] {
  const words = [...new Set(query.toLowerCase().match(/[a-z][a-z0-9]{2,24}/g) ?? [])];
  if (words.length > 0) return words;
  throw new YardmasterError(
    'ERR_CONFIG',
    `"${query}" has no word of three letters or more to ask for; try --query 'socket address'`,
    { query },
  );
}
