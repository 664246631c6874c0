import { ActiveMemoryManagerPolicy, drop, replicate } from 'yardmaster/policy';

/** Moves the largest results from workers whose memory is fuller than `above` to others, until it is not. */
export class EmptyFull extends ActiveMemoryManagerPolicy {
  static apiVersion = 1;
  static optionsSchema = {
    type: 'object',
    additionalProperties: false,
    properties: { above: { type: 'number', minimum: 0, maximum: 1, default: 0.7 } },
  };

  *run({ cluster, workersMemory }) {
    const excessOf = (worker) => {
      const limit = worker.memoryLimitBytes || Infinity; // 0 is no limit.
      return workersMemory.get(worker) - this.options.above * limit;
    };
    const roomy = [...cluster.running].filter((worker) => excessOf(worker) < 0);
    for (const full of cluster.running) {
      let excess = excessOf(full);
      for (const task of [...full.hasWhat].toSorted((one, other) => other.nbytes - one.nbytes)) {
        if (excess <= 0) break;
        excess -= task.nbytes;
        // The original goes in a later round, when the copy has arrived.
        if (task.whoHas.size === 1) yield replicate(task, roomy);
        else yield drop(task, [full]);
      }
    }
  }
}
