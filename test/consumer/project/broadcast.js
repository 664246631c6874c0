import { ActiveMemoryManagerPolicy, replicate } from 'yardmaster/policy';

/** Keeps one result on every worker. */
export class KeepEverywhere extends ActiveMemoryManagerPolicy {
  static optionsSchema = {
    type: 'object',
    additionalProperties: false,
    required: ['key'],
    properties: { key: { type: 'string' } },
  };

  *run({ cluster }) {
    const task = cluster.tasks.get(this.options.key);
    if (task === undefined) return;
    for (let missing = cluster.workers.size - task.whoHas.size; missing > 0; missing--) {
      if ((yield replicate(task)) === undefined) return;
    }
  }
}
