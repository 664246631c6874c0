import {
  ActiveMemoryManagerPolicy,
  type AmmView,
  type OptionsOf,
  replicate,
  type SuggestionGenerator,
} from '../../core/api/index.ts';

const optionsSchema = {
  type: 'object',
  required: ['key'],
  additionalProperties: false,
  properties: { key: { type: 'string', description: 'Key of the result.' } },
} as const;

/**
 * Keeps a copy of one result on every worker, also on those that come later. Do not combine it with
 * `reduce-replicas`, which drops what this one makes.
 */
export class EnsureBroadcast extends ActiveMemoryManagerPolicy<OptionsOf<typeof optionsSchema>> {
  static override readonly optionsSchema = optionsSchema;

  override *run({ cluster }: AmmView): SuggestionGenerator {
    const task = cluster.tasks.get(this.options.key);
    if (task === undefined) return;
    for (let missing = cluster.workers.size - task.whoHas.size; missing > 0; missing--) {
      const chosen = yield replicate(task);
      if (chosen === undefined) return; // Refused; the next round asks again.
    }
  }
}
