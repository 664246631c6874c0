import {
  checkSize,
  NOMINAL,
  range,
  type TaskCost,
  type Workload,
  WorkloadBuilder,
} from './workload.ts';

// Graphs of small applications whose pattern is known, in any size.

const KIB = 1024;
const MIB = 1024 * KIB;

/**
 * Batches of texts become vectors, independently of each other, and the client gathers all.
 * In the literature `vectorizer-1M-300`: a million rows in batches of 1M/300 rows, which makes 301 batches.
 */
export function vectorizer(batches: number): Workload {
  checkSize('batches', batches);
  const cost = { durationS: 1.504, nbytes: 10_226 * KIB };
  const graph = new WorkloadBuilder();
  const all = range(batches).map((batch) => graph.add(`vectorize-${batch}`, [], cost));
  return graph.build(`vectorizer-${batches}`, all);
}

/**
 * Bags of words, in five tasks per batch of texts: normalise; count the words of that; correct it; count
 * the words of the corrected text; make its bag. The client gathers both counts and the bags.
 * In the literature `wordbag-100K-50`. There the client waits for the counts of all batches before it
 * submits what comes next; here everything is submitted at once.
 */
export function wordbag(batches: number): Workload {
  checkSize('batches', batches);
  const cost = { durationS: 0.301, nbytes: 5136 * KIB };
  const graph = new WorkloadBuilder();
  const wanted: number[] = [];
  for (const batch of range(batches)) {
    const normal = graph.add(`normalize-${batch}`, [], cost);
    const words = graph.add(`count-${batch}`, [normal], cost);
    const correct = graph.add(`correct-${batch}`, [normal], cost);
    const correctWords = graph.add(`recount-${batch}`, [correct], cost);
    const bag = graph.add(`bag-${batch}`, [correct], cost);
    wanted.push(words, correctWords, bag);
  }
  return graph.build(`wordbag-${batches}`, wanted);
}

/**
 * A task splits the input for `mappers` tasks, and each of as many reducers needs a part of what each of
 * them made. The pattern and the expected costs are those of the simulator Estee, whose data set has it
 * with 160 mappers. A result here is as large as what one dependent reads of it there.
 */
export function mapreduce(mappers: number): Workload {
  checkSize('mappers', mappers);
  const graph = new WorkloadBuilder();
  const split = graph.add('split-0', [], { durationS: 10, nbytes: 2.5 * KIB * MIB });
  const mapping = { durationS: 50, nbytes: (250 / mappers) * MIB };
  const mapped = range(mappers).map((index) => graph.add(`map-${index}`, [split], mapping));
  const reducing = { durationS: 10, nbytes: 0 };
  const reduced = range(mappers).map((index) => graph.add(`reduce-${index}`, mapped, reducing));
  return graph.build(`mapreduce-${mappers}`, reduced);
}

const FOLDS = 5;
const FOLD_BYTES = 320 * MIB;

/**
 * Cross-validation of `candidates` models: a table in five folds, the five ways to leave one out; each
 * candidate is trained on each of them, evaluated on what was left out, and rated by its five results.
 * The pattern and the expected costs are those of the simulator Estee, whose data set has it with 8
 * candidates and 4 cores for training; here every task takes one thread. The result of the first task is
 * as large as the four folds that one dependent reads of it.
 */
export function crossv(candidates: number): Workload {
  checkSize('candidates', candidates);
  const graph = new WorkloadBuilder();
  const rest = (FOLDS - 1) * FOLD_BYTES;
  const table = graph.add('generate-0', [], { durationS: 5, nbytes: rest });
  const merging = { durationS: 1.1, nbytes: rest };
  const merges = range(FOLDS).map((fold) => graph.add(`merge-${fold}`, [table], merging));
  const training = { durationS: 680, nbytes: 18 * MIB };
  const evaluating = { durationS: 34, nbytes: 100 };
  const ratings = range(candidates).map((candidate) => {
    const results = merges.map((merged, fold) => {
      const name = `${candidate}_${fold}`;
      const model = graph.add(`train-${name}`, [merged], training);
      return graph.add(`evaluate-${name}`, [table, model], evaluating);
    });
    return graph.add(`rate-${candidate}`, results, { durationS: 0.2, nbytes: 0 });
  });
  return graph.build(`crossv-${candidates}`, ratings);
}

/** The cost of `merge` in the literature; the means of its sizes are the same. */
const MERGED: TaskCost = { durationS: 0.006e-3, nbytes: 0.03 * KIB };

/**
 * `leaves` tasks and one that needs all of them: as many messages as can be, for nothing.
 * In the literature `merge-10K` to `merge-100K`, 6 µs and 0.03 KiB per task.
 */
export function merge(leaves: number): Workload {
  return mergeOf('merge', leaves, MERGED);
}

/**
 * {@link merge} with tasks that take a while, so that workers rather than the scheduler are busy.
 * In the literature `merge_slow-5K` and `merge_slow-20K`, 100 ms and 0.02 KiB per task.
 */
export function mergeSlow(leaves: number): Workload {
  return mergeOf('merge_slow', leaves, { durationS: 0.1, nbytes: 0.02 * KIB });
}

function mergeOf(name: string, leaves: number, cost: TaskCost): Workload {
  checkSize('leaves', leaves);
  const graph = new WorkloadBuilder();
  const all = range(leaves).map((index) => graph.add(`leaf-${index}`, [], cost));
  return graph.build(`${name}-${leaves}`, [graph.add('merge-0', all, cost)]);
}

/** `tasks` tasks that need nothing, all wanted. */
export function map(tasks: number): Workload {
  checkSize('tasks', tasks);
  const graph = new WorkloadBuilder();
  const all = range(tasks).map((index) => graph.add(`inc-${index}`, [], NOMINAL));
  return graph.build(`map-${tasks}`, all);
}

/**
 * A binary reduction in `levels` levels: 2^`levels` - 1 tasks, half of them leaves.
 * In the literature `tree-15`, 7 µs and 0.03 KiB per task.
 */
export function tree(levels: number): Workload {
  checkSize('levels', levels);
  const cost = { durationS: 0.007e-3, nbytes: 0.03 * KIB };
  const graph = new WorkloadBuilder();
  let level = range(2 ** (levels - 1)).map((index) => graph.add(`leaf-${index}`, [], cost));
  for (let depth = 0; level.length > 1; depth++) {
    level = range(level.length / 2).map((index) => {
      const pair = level.slice(2 * index, 2 * index + 2);
      return graph.add(`add${depth}-${index}`, pair, cost);
    });
  }
  return graph.build(`tree-${levels}`, level);
}

/** `count` chains of `length` tasks, the last ones wanted. */
export function chains(count: number, length: number): Workload {
  checkSize('count', count);
  checkSize('length', length);
  const graph = new WorkloadBuilder();
  const last = range(count).map((chain) => {
    let link = graph.add(`c${chain}-0`, [], NOMINAL);
    for (let at = 1; at < length; at++) link = graph.add(`c${chain}-${at}`, [link], NOMINAL);
    return link;
  });
  return graph.build(`chains-${count}-${length}`, last);
}

/** `partitions` inputs, each split for each of as many outputs: partitions² + 2 partitions tasks. */
export function shuffle(partitions: number): Workload {
  checkSize('partitions', partitions);
  const graph = new WorkloadBuilder();
  const all = range(partitions);
  for (const from of all) graph.add(`in-${from}`, [], NOMINAL);
  const splits = all.map((from) =>
    all.map((to) => graph.add(`split-${from}_${to}`, [from], NOMINAL)),
  );
  const outputs = all.map((to) => {
    const parts = splits.map((parts) => parts[to] as number);
    return graph.add(`out-${to}`, parts, NOMINAL);
  });
  return graph.build(`shuffle-${partitions}`, outputs);
}

/** A stencil in one dimension: each of `width` tasks of a step needs three neighbours of the step before. */
export function overlap(width: number, steps: number): Workload {
  checkSize('width', width);
  checkSize('steps', steps);
  const graph = new WorkloadBuilder();
  let before: number[] = [];
  for (let step = 0; step < steps; step++) {
    const needed = before;
    before = range(width).map((at) => {
      return graph.add(`s${step}-${at}`, needed.slice(Math.max(0, at - 1), at + 2), NOMINAL);
    });
  }
  return graph.build(`overlap-${width}-${steps}`, before);
}
