import {
  ActiveMemoryManagerPolicy,
  type AmmView,
  replicate,
  type SuggestionGenerator,
} from '../../core/api/index.ts';

/**
 * Makes the copies that were asked for (`replicas: n` of a task, `client.replicate`, `broadcast` of
 * scattered data) and makes them anew when workers leave. The manager always runs it;
 * `reduce-replicas` leaves these copies alone.
 */
export class KeepReplicas extends ActiveMemoryManagerPolicy {
  static override readonly optionsSchema = { type: 'object', additionalProperties: false };

  /** O(tasks whose replicas are wanted, and the copies that are missing). */
  override *run({ cluster, pending }: AmmView): SuggestionGenerator {
    for (const task of cluster.replicasWanted) {
      if (task.state !== 'memory') continue;
      const moves = pending.get(task);
      const copies = task.whoHas.size + (moves?.replicate.size ?? 0) - (moves?.drop.size ?? 0);
      const wanted = Math.min(task.replicas, cluster.workers.size);
      for (let missing = wanted - copies; missing > 0; missing--) {
        const chosen = yield replicate(task, undefined, { beyondPending: true });
        if (chosen === undefined) break; // No running worker is left for it.
      }
    }
  }
}
