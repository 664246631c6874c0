/** The graph shapes of the benchmarks, the same as those that drive the peer. */
import type { GraphTask } from '../../core/api/index.ts';

/** A graph to submit and the keys to ask for. */
export interface Shape {
  readonly tasks: GraphTask[];
  readonly keys: string[];
}

/** A call of fifty bytes; the kernel does not look inside. */
const RUN_SPEC = 'x'.repeat(49);

class Builder {
  readonly tasks: GraphTask[] = [];

  add(key: string, dependencies: readonly string[] = []): string {
    this.tasks.push({ key, dependencies, runSpec: `${RUN_SPEC}${this.tasks.length % 10}` });
    return key;
  }
}

/** n leaves into one task. */
function merge(n: number): Shape {
  const graph = new Builder();
  const leaves = Array.from({ length: n }, (_, index) => graph.add(`leaf-${index}`));
  return { tasks: graph.tasks, keys: [graph.add('merge-0', leaves)] };
}

/** n independent tasks, all wanted. */
function map(n: number): Shape {
  const graph = new Builder();
  const keys = Array.from({ length: n }, (_, index) => graph.add(`inc-${index}`));
  return { tasks: graph.tasks, keys };
}

/** About n tasks: half of them leaves of a binary reduction. */
function tree(n: number): Shape {
  const graph = new Builder();
  let leaves = 1;
  while (leaves * 2 <= n / 2 + 1) leaves *= 2;
  let level = Array.from({ length: leaves }, (_, index) => graph.add(`leaf-${index}`));
  for (let depth = 0; level.length > 1; depth++) {
    const next: string[] = [];
    for (let index = 0; index < level.length; index += 2) {
      const pair = [level[index] as string, level[index + 1] as string];
      next.push(graph.add(`add${depth}-${index / 2}`, pair));
    }
    level = next;
  }
  return { tasks: graph.tasks, keys: level };
}

/** `width` chains, n tasks in all. */
function chains(n: number, width: number): Shape {
  const graph = new Builder();
  const length = Math.floor(n / width);
  const keys: string[] = [];
  for (let chain = 0; chain < width; chain++) {
    let last = graph.add(`c${chain}-0`);
    for (let link = 1; link < length; link++) last = graph.add(`c${chain}-${link}`, [last]);
    keys.push(last);
  }
  return { tasks: graph.tasks, keys };
}

/** m by m, everybody to everybody; n is about m². */
function shuffle(n: number): Shape {
  const graph = new Builder();
  const m = Math.floor(Math.sqrt(n));
  const range = Array.from({ length: m }, (_, index) => index);
  for (const i of range) graph.add(`in-${i}`);
  for (const i of range) for (const j of range) graph.add(`split-${i}_${j}`, [`in-${i}`]);
  const keys = range.map((j) =>
    graph.add(
      `out-${j}`,
      range.map((i) => `split-${i}_${j}`),
    ),
  );
  return { tasks: graph.tasks, keys };
}

/** A one-dimensional stencil: each task needs three neighbours of the step before. */
function overlap(n: number, width = 100): Shape {
  const graph = new Builder();
  const steps = Math.floor(n / width);
  for (let i = 0; i < width; i++) graph.add(`s0-${i}`);
  for (let step = 1; step < steps; step++) {
    for (let i = 0; i < width; i++) {
      const neighbours = [i - 1, i, i + 1].filter((j) => j >= 0 && j < width);
      graph.add(
        `s${step}-${i}`,
        neighbours.map((j) => `s${step - 1}-${j}`),
      );
    }
  }
  const keys = Array.from({ length: width }, (_, i) => `s${steps - 1}-${i}`);
  return { tasks: graph.tasks, keys };
}

export const SHAPES: Readonly<Record<string, (n: number) => Shape>> = {
  merge,
  map,
  tree,
  chain: (n) => chains(n, 1),
  chains: (n) => chains(n, 100),
  shuffle,
  overlap: (n) => overlap(n),
};
