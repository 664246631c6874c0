import { definePolicy } from '../../core/api/index.ts';

/**
 * First come, first served: tasks run in the order of their submission, whichever client submitted
 * them. Dask's order of generations.
 */
export const fifo = definePolicy('fairness', {
  name: 'fifo',
  apiVersion: 1,
  optionsSchema: { type: 'object', additionalProperties: false },
  create: () => ({ generations: ({ generation }) => generation }),
});
