import { defineRule } from 'yardmaster/policy';

/** Tasks with the annotation `gpu` run on workers with that resource, and other tasks elsewhere, if there is an elsewhere. */
export default defineRule({
  name: 'on-gpu',
  apiVersion: 1,
  optionsSchema: {
    type: 'object',
    additionalProperties: false,
    properties: { resource: { type: 'string', default: 'GPU' } },
  },
  create: ({ resource }) => {
    const hasGpu = (worker) => worker.resources.has(resource);
    const needsGpu = ({ annotations }) => annotations?.gpu === true;
    return {
      filter: (task, worker) =>
        !needsGpu(task) || hasGpu(worker) || { refuse: `it has no ${resource}` },
      score: (task, worker) => (!needsGpu(task) && hasGpu(worker) ? 1 : 0),
    };
  },
});
