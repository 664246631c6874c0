import { definePolicy } from '../../core/api/index.ts';

/**
 * First come, first served: what was submitted earlier runs earlier, whoever submitted it. Dask's order
 * of generations.
 */
export const fifo = definePolicy('fairness', {
  name: 'fifo',
  optionsSchema: { type: 'object', additionalProperties: false },
  create: () => ({ generations: ({ generation }) => generation }),
});
