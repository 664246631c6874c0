import { definePolicy, type GraphTask } from '../../../core/api/index.ts';

/** Of the tasks that are ready, the one with the smallest annotation `cost` first. */
export const cheapestFirst = definePolicy('ordering', {
  name: 'cheapest-first',
  apiVersion: 1,
  create: () => ({
    order(tasks: readonly GraphTask[]): number[] {
      const indexByKey = new Map(tasks.map(({ key }, index) => [key, index]));
      const dependents = tasks.map((): number[] => []);
      const missing = tasks.map(({ dependencies }, index) => {
        const inside = [...new Set(dependencies)].flatMap((key) => indexByKey.get(key) ?? []);
        for (const dependency of inside) dependents[dependency]?.push(index);
        return inside.length;
      });
      const costs = tasks.map(({ annotations }) => Number(annotations?.['cost'] ?? 0));
      const ready = [...missing.keys()].filter((index) => missing[index] === 0);
      const ranks = tasks.map(() => 0);
      for (let rank = 0; rank < tasks.length; rank++) {
        ready.sort((a, b) => (costs[b] ?? 0) - (costs[a] ?? 0) || b - a);
        const index = ready.pop() ?? 0;
        ranks[index] = rank;
        for (const dependent of dependents[index] ?? []) {
          missing[dependent] = (missing[dependent] ?? 0) - 1;
          if (missing[dependent] === 0) ready.push(dependent);
        }
      }
      return ranks;
    },
  }),
});
