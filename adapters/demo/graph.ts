import { type Graph, ref, task } from '../client/index.ts';
import type { IndexPart, LetterRange } from './inverted-index.ts';
import type { Weighted, WordScores } from './ranking.ts';
import {
  answer,
  digest,
  findTerms,
  indexChunk,
  matchDocuments,
  mergeIndexes,
  type Question,
  scoreQuery,
} from './tasks.ts';

/** How the work is cut. */
export interface Cut {
  readonly filesPerTask: number;
  /** Indexes that one task merges. At least 2. */
  readonly fanIn: number;
  /** Ranges of letters that the index is split into. */
  readonly ranges: number;
}

/** The graph, and the names of what is wanted of it. */
export interface DemoGraph {
  readonly graph: Graph;
  readonly answer: string;
  readonly digests: readonly string[];
  readonly taskCount: number;
  /** Tasks of each stage. */
  readonly stages: ReadonlyMap<string, number>;
}

/**
 * Root tasks read files and index them. The first merges take their indexes whole, so that each is
 * read once; from there on there is a tree for each range of letters. The question goes to each
 * range and the parts of the answer are put together.
 */
export function demoGraph(paths: readonly string[], question: Question, cut: Cut): DemoGraph {
  const graph: Record<string, Graph[string]> = {};
  const roots: string[] = [];
  for (let first = 0; first < paths.length; first += cut.filesPerTask) {
    const key = `('index-files', ${roots.length})`;
    graph[key] = task(indexChunk, paths.slice(first, first + cut.filesPerTask), first);
    roots.push(key);
  }
  const branches = addMerges(graph, roots, { name: 'merge-0', fanIn: cut.fanIn });
  const scores: string[] = [];
  const terms: string[] = [];
  const digests: string[] = [];
  const matching = ref<Weighted<number>[]>('match-documents');
  for (let index = 0; index < cut.ranges; index++) {
    const whole = addMergeTree(graph, branches, { index, of: cut.ranges }, cut.fanIn);
    const part = ref<IndexPart>(whole);
    scores.push(add(graph, `('score', ${index})`, task(scoreQuery, part, question)));
    terms.push(add(graph, `('terms', ${index})`, task(findTerms, part, matching, question)));
    digests.push(add(graph, `('digest', ${index})`, task(digest, part)));
  }
  const allScores = scores.map((key) => ref<WordScores[]>(key));
  const allTerms = terms.map((key) => ref<Weighted<string>[]>(key));
  add(graph, 'match-documents', task(matchDocuments, allScores, question));
  add(graph, 'answer', task(answer, allTerms, matching, question));
  const keys = Object.keys(graph);
  const stages = new Map<string, number>();
  for (const key of keys) stages.set(stageOf(key), (stages.get(stageOf(key)) ?? 0) + 1);
  return { graph, answer: 'answer', digests, taskCount: keys.length, stages };
}

/** What a task is for: to index files, to merge indexes, or to answer the question. */
export function stageOf(key: string): string {
  if (key.includes('index-files')) return 'index files';
  return key.includes('merge-') ? 'merge' : 'answer';
}

function addMergeTree(
  graph: Record<string, Graph[string]>,
  leaves: readonly string[],
  range: LetterRange,
  fanIn: number,
): string {
  let level = leaves;
  // At least once: the first level picks the terms of the range.
  for (let depth = 1; depth === 1 || level.length > 1; depth++) {
    level = addMerges(graph, level, { name: `merge-${depth}-${range.index}`, fanIn, range });
  }
  return level[0] as string;
}

/** One level: each task merges a few neighbours. */
function addMerges(
  graph: Record<string, Graph[string]>,
  keys: readonly string[],
  { name, fanIn, range }: { readonly name: string; readonly fanIn: number; range?: LetterRange },
): string[] {
  const merged: string[] = [];
  for (let start = 0; start < keys.length; start += fanIn) {
    const parts = keys.slice(start, start + fanIn).map((key) => ref<IndexPart>(key));
    const key = `('${name}', ${merged.length})`;
    merged.push(add(graph, key, task(mergeIndexes, parts, range)));
  }
  return merged;
}

function add(graph: Record<string, Graph[string]>, key: string, node: Graph[string]): string {
  graph[key] = node;
  return key;
}
