import { type Graph, ref, task } from '../client/index.ts';
import type { Document } from './documents.ts';
import { BAND_COUNT, type Fingerprints, type Links } from './near-duplicates.ts';
import { collect, compare, families, fingerprintFiles } from './tasks.ts';

/** Text of one task: about twenty milliseconds of work. */
const TASK_BYTES = 300e3;
/** Tasks that little text is spread over, too. */
const TASKS_MIN = 64;
/** Results that one task collects. */
const FAN_IN = 8;
/** Tasks that compare, each in a part of the bands. */
const COMPARING = 8;

/** The graph, and the name of its result. */
export interface DemoGraph {
  readonly graph: Graph;
  readonly answer: string;
  readonly taskCount: number;
  /** Tasks of each stage. */
  readonly stages: ReadonlyMap<string, number>;
}

/**
 * Root tasks read a few files each and return their fingerprints, which others collect. All collected fingerprints go to
 * each of the tasks that compare, and what these find is put together.
 */
export function demoGraph(documents: readonly Document[]): DemoGraph {
  const graph: Record<string, Graph[string]> = {};
  const roots = cut(documents).map(({ paths, first }, index) => {
    const key = `('fingerprint', ${index})`;
    graph[key] = task(fingerprintFiles, paths, first);
    return ref<Fingerprints>(key);
  });
  const collected: ReturnType<typeof ref<Fingerprints>>[] = [];
  for (let start = 0; start < roots.length; start += FAN_IN) {
    const key = `('collect', ${collected.length})`;
    // A second copy costs little beside the work that is lost with a worker that holds the only one.
    graph[key] = task(collect, roots.slice(start, start + FAN_IN)).with({ replicas: 2 });
    collected.push(ref<Fingerprints>(key));
  }
  const links = Array.from({ length: COMPARING }, (_, index) => {
    const count = BAND_COUNT / COMPARING;
    const key = `('compare', ${index})`;
    graph[key] = task(compare, collected, { first: index * count, count });
    return ref<Links>(key);
  });
  graph['families'] = task(families, links, collected);
  const keys = Object.keys(graph);
  const stages = new Map<string, number>();
  for (const key of keys) stages.set(stageOf(key), (stages.get(stageOf(key)) ?? 0) + 1);
  return { graph, answer: 'families', taskCount: keys.length, stages };
}

/** The stage of a task: the name in its key. */
export function stageOf(key: string): string {
  return /[a-z]+/.exec(key)?.[0] ?? key;
}

/** Neighbouring files of about the same amount of text, and the number of the first one. */
function cut(documents: readonly Document[]): { paths: string[]; first: number }[] {
  const total = documents.reduce((sum, { textBytes }) => sum + textBytes, 0);
  const limit = Math.min(TASK_BYTES, total / TASKS_MIN);
  const parts: { paths: string[]; first: number }[] = [];
  let left = 0;
  for (const [number, { path, textBytes }] of documents.entries()) {
    if (left <= 0) {
      parts.push({ paths: [], first: number });
      left = limit;
    }
    parts.at(-1)?.paths.push(path);
    left -= textBytes;
  }
  return parts;
}
