import { definePolicy, type GraphTask } from '../../core/api/index.ts';

/**
 * Depth first from the requested keys, in the order in which they and their dependencies were given:
 * what belongs together is computed together, and a reduction is finished before the next one begins.
 * O(tasks + dependencies).
 */
export const depthFirst = definePolicy('ordering', {
  name: 'depth-first',
  create: () => ({ order }),
});

function order(tasks: readonly GraphTask[], keys: readonly string[]): Uint32Array {
  const indexByKey = new Map<string, number>();
  tasks.forEach((task, index) => indexByKey.set(task.key, index));
  const ranks = new Uint32Array(tasks.length);
  const entered = new Uint8Array(tasks.length);
  const path: { readonly index: number; next: number }[] = [];
  let rank = 0;
  const enter = (index: number | undefined): void => {
    if (index === undefined || entered[index] === 1) return;
    entered[index] = 1;
    path.push({ index, next: 0 });
  };
  const drain = (): void => {
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const { dependencies } = tasks[top.index] as GraphTask;
      const dependency = dependencies[top.next++];
      if (dependency !== undefined) {
        enter(indexByKey.get(dependency));
        continue;
      }
      ranks[top.index] = rank++;
      path.pop();
    }
  };
  for (const key of keys) {
    enter(indexByKey.get(key));
    drain();
  }
  // What no requested key needs comes last.
  for (let index = 0; index < tasks.length; index++) {
    enter(index);
    drain();
  }
  return ranks;
}
