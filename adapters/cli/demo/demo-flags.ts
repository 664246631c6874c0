import { type Corpus, findCorpus } from '../../demo/index.ts';

/** How often the memory manager makes the second copies that protect against the death of a worker. */
const REPLICATION_INTERVAL = '200ms';

/** Flags of `demo`. */
export interface DemoFlags {
  readonly config?: string;
  readonly path?: string;
  readonly workers: number;
  readonly threads: number;
  readonly limitFiles?: number;
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
 * @throws YardmasterError `ERR_CONFIG` when there is no text
 */
export function findText({ path, limitFiles }: DemoFlags): Corpus {
  const corpus = findCorpus(path, limitFiles);
  print(`Text       ${corpus.documents.length} of ${corpus.found} files in ${corpus.folder}`);
  return corpus;
}

/**
 * The configuration, unless a file is named.
 * @param allowedFailures - deaths of workers that a task is not to blame for
 */
export function demoConfig(allowedFailures: number): {
  readonly scheduler: Readonly<Record<string, unknown>>;
} {
  const activeMemoryManager = { interval: REPLICATION_INTERVAL };
  return { scheduler: { allowedFailures, activeMemoryManager } };
}

/** A line of what is found, on standard output. */
export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
