import { ActiveMemoryManagerPolicy, drop, replicate } from 'yardmaster/policy';

/** Moves results whose keys begin with `prefix` to the worker that is called `worker`. */
export class PinResults extends ActiveMemoryManagerPolicy {
  static apiVersion = 1;
  static optionsSchema = {
    type: 'object',
    additionalProperties: false,
    required: ['prefix', 'worker'],
    properties: { prefix: { type: 'string' }, worker: { type: 'string' } },
  };

  *run({ cluster }) {
    const { prefix, worker: name } = this.options;
    const home = [...cluster.workers.values()].find((worker) => worker.name === name);
    if (home === undefined) return; // Not there yet: the next round looks again.
    for (const task of cluster.tasks.values()) {
      if (!task.key.startsWith(prefix)) continue;
      // The original goes in a later round, when the copy has arrived.
      if (!task.whoHas.has(home)) yield replicate(task, [home]);
      else for (const other of task.whoHas) if (other !== home) yield drop(task, [other]);
    }
  }
}
