import { performance } from 'node:perf_hooks';
import { YardmasterError } from '../../../core/api/index.ts';
import { LocalCluster } from '../../app/local-cluster.ts';
import {
  type Answer,
  type Corpus,
  type Cut,
  demoGraph,
  findCorpus,
  type Question,
  singlePass,
} from '../../demo/index.ts';
import { Chaos } from '../demo/chaos.ts';
import { startProgress } from '../demo/progress.ts';
import { DemoStats } from '../demo/stats.ts';
import { untilStopped } from '../until-stopped.ts';

/**
 * A few milliseconds of work for each of hundreds of tasks. With fewer files the indexes that tasks hand
 * over, and merge level by level, cost more than making them: with 3 twice as much CPU as one thread needs.
 */
const CUT: Cut = { filesPerTask: 12, fanIn: 8, ranges: 4 };
const DOCUMENT_LIMIT = 50;
const TERM_LIMIT = 10;
/** Of `--chaos` without a number. */
const KILLS = 10;
const SHOWN_DOCUMENTS = 5;

/** What the cluster came to, and what it took. */
interface Outcome {
  readonly answer: Answer;
  readonly digests: readonly string[];
  readonly taskCount: number;
  readonly seconds: number;
}

/** Flags of `demo`. */
export interface DemoFlags {
  readonly config?: string;
  readonly path?: string;
  readonly workers: number;
  readonly threads: number;
  readonly query: string;
  readonly limitFiles: number;
  /** Kills; true: a few. */
  readonly chaos?: number | true;
  readonly seed?: number;
}

/** `yardmaster demo`. Returns the exit code: 1 when the check fails. */
export async function demoCommand(flags: DemoFlags): Promise<number> {
  const corpus = findCorpus(flags.path, flags.limitFiles);
  const question: Question = {
    words: wordsOfQuery(flags.query),
    documentCount: corpus.paths.length,
    documentLimit: DOCUMENT_LIMIT,
    termLimit: TERM_LIMIT,
  };
  print(`Text       ${corpus.paths.length} of ${corpus.found} files in ${corpus.folder}`);
  const stats = new DemoStats();
  let cluster: LocalCluster | undefined;
  let outcome: Outcome | undefined;
  let isInterrupted = false;
  const compute = async (): Promise<void> => {
    try {
      cluster = await startCluster(flags);
      if (!isInterrupted) outcome = await computeOn(cluster, { corpus, question, stats, flags });
    } catch (error) {
      if (!isInterrupted) throw error; // What is cut off fails, as it should.
    } finally {
      await cluster?.close();
    }
  };
  const code = await untilStopped({
    closed: compute(),
    close: async () => {
      isInterrupted = true;
      await cluster?.close();
    },
  });
  if (outcome === undefined) return code;
  printOutcome(outcome, stats, corpus, flags);
  return check(outcome, corpus, question) ? code : 1;
}

function startCluster({ workers, threads, config, chaos }: DemoFlags): Promise<LocalCluster> {
  // A task is not to blame for the deaths of its workers, of which there will be many.
  const scheduler = { allowedFailures: killsOf(chaos) };
  const from =
    config !== undefined ? { config } : chaos === undefined ? {} : { config: { scheduler } };
  return LocalCluster.start({ mode: 'processes', workers, threads, ...from });
}

interface Work {
  readonly corpus: Corpus;
  readonly question: Question;
  readonly stats: DemoStats;
  readonly flags: DemoFlags;
}

async function computeOn(
  cluster: LocalCluster,
  { corpus, question, stats, flags }: Work,
): Promise<Outcome> {
  await cluster.scheduler.addPlugin(stats);
  const client = await cluster.client();
  const work = demoGraph(corpus.paths, question, CUT);
  print(`Cluster    scheduler at ${cluster.address}, worker processes ${cluster.pids.join(', ')}`);
  print(`Graph      ${work.taskCount} tasks`);
  const progress = startProgress(work.taskCount, process.stderr);
  const chaos = chaosIn(cluster, work.taskCount, flags);
  stats.onProgress = (done) => {
    progress.update(Math.min(done, work.taskCount));
    chaos?.onProgress(done);
  };
  try {
    const startMs = performance.now();
    const futures = client.compute(work.graph, [work.answer, ...work.digests]);
    const [answer, ...digests] = await client.gather(futures);
    const seconds = (performance.now() - startMs) / 1000;
    if (chaos !== undefined) tellChaos(chaos, stats.tasksDone - work.taskCount, flags);
    return {
      answer: answer as Answer,
      digests: digests as string[],
      taskCount: work.taskCount,
      seconds,
    };
  } finally {
    progress.stop();
  }
}

function killsOf(chaos: DemoFlags['chaos']): number {
  return typeof chaos === 'number' ? chaos : KILLS;
}

function chaosIn(cluster: LocalCluster, taskCount: number, flags: DemoFlags): Chaos | undefined {
  if (flags.chaos === undefined) return undefined;
  const { seed = Date.now() % 1_000_000 } = flags;
  const kills = killsOf(flags.chaos);
  print(`Chaos      ${kills} times a worker will be killed; --seed ${seed} gives the same moments`);
  return new Chaos({ kills, seed, taskCount, cluster: cluster.scheduler.cluster, print });
}

function tellChaos({ killCount }: Chaos, recomputed: number, { chaos }: DemoFlags): void {
  print(
    `Chaos      ${killCount} of ${killsOf(chaos)} kills, ${recomputed} tasks computed once more`,
  );
}

function printOutcome(
  { answer, taskCount, seconds }: Outcome,
  stats: DemoStats,
  corpus: Corpus,
  { query }: DemoFlags,
): void {
  print(
    `\nThe most characteristic terms of the ${answer.documents.length} documents nearest to "${query}":`,
  );
  for (const [index, { item, weight }] of answer.terms.entries()) {
    print(ranked(index, weight, item));
  }
  print('\nThe nearest documents:');
  for (const [index, { item, weight }] of answer.documents.slice(0, SHOWN_DOCUMENTS).entries()) {
    print(ranked(index, weight, corpus.paths[item] ?? ''));
  }
  const peaks = [...stats.peakBytes].sort(([a], [b]) => (a < b ? -1 : 1));
  print(
    `\n${taskCount} tasks in ${seconds.toFixed(1)} s: ${(taskCount / seconds).toFixed(0)} tasks per second`,
  );
  print(`${mebibytes(stats.movedBytes)} moved between workers`);
  for (const [name, bytes] of peaks) print(`${mebibytes(bytes)} at most in the memory of ${name}`);
}

/** Compares the whole index and the answer with what a plain pass comes to. */
function check({ answer, digests }: Outcome, corpus: Corpus, question: Question): boolean {
  const startMs = performance.now();
  const plain = singlePass(corpus.paths, question, CUT.ranges);
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  const isSameIndex = JSON.stringify(plain.digests) === JSON.stringify(digests);
  const isSameAnswer = JSON.stringify(plain.answer) === JSON.stringify(answer);
  if (isSameIndex && isSameAnswer) {
    print(
      `Check      passed: one thread, in ${seconds} s, comes to the same index of ${plain.termCount} terms and to the same answer`,
    );
    return true;
  }
  const what = isSameIndex ? 'answer' : 'index';
  print(`Check      FAILED: the ${what} is not the one that a single thread comes to`);
  return false;
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

function ranked(index: number, weight: number, what: string): string {
  return `${String(index + 1).padStart(4)}  ${weight.toFixed(2).padStart(8)}  ${what}`;
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`.padStart(10);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
