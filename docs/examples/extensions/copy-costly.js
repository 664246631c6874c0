import { defineAmmPolicy, replicate } from 'yardmaster/policy';

/** Keeps two copies of each small result that took long to compute, so that the loss of a worker costs little. */
export const CopyCostly = defineAmmPolicy({
  name: 'CopyCostly',
  apiVersion: 1,
  optionsSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      computedFor: { type: ['number', 'string'], unit: 'ms', default: '10s' },
      smallerThan: { type: ['number', 'string'], unit: 'bytes', default: '10MB' },
    },
  },
  *run({ cluster }, { computedFor, smallerThan }) {
    for (const task of cluster.tasks.values()) {
      const { durationAverageS } = task.prefix;
      const isCostly = 1000 * durationAverageS >= computedFor && task.nbytes < smallerThan;
      if (isCostly && task.whoHas.size === 1) yield replicate(task);
    }
  },
});
