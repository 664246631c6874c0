import {
  ActiveMemoryManagerPolicy,
  type AmmView,
  drop,
  type OptionsOf,
  replicate,
  type SuggestionGenerator,
  type TaskView,
  type WorkerView,
} from '../../core/api/index.ts';

const optionsSchema = {
  type: 'object',
  required: ['address'],
  additionalProperties: false,
  properties: { address: { type: 'string', description: 'Address of the worker that leaves.' } },
} as const;

/**
 * Moves all that only one worker holds to others, so that it can be closed: what has another copy is
 * dropped at once, of the rest a copy is made. It leaves the manager by itself when it is done or
 * cannot be. One instance per worker; `retireWorkers` adds it. Dask's `RetireWorker`.
 */
export class RetireWorker extends ActiveMemoryManagerPolicy<OptionsOf<typeof optionsSchema>> {
  static override readonly optionsSchema = optionsSchema;

  /** There is nowhere to put what it holds, or it holds an actor. */
  noRecipients = false;

  /** O(results of the worker). */
  override *run({ cluster, pending, policies }: AmmView): SuggestionGenerator {
    const worker = cluster.workers.get(this.options.address);
    if (worker === undefined || worker.actors.size > 0) {
      this.noRecipients = worker !== undefined;
      policies.delete(this);
      return;
    }
    const here = [worker];
    let unique = 0;
    for (const task of worker.hasWhat) {
      if (task.isActor) continue;
      if (task.whoHas.size > 1) {
        if ((yield drop(task, here, { force: true })) !== undefined) continue;
        // In use, or it has just been dropped: the next round asks again.
        if (isOnRunning(task)) continue;
      }
      unique++;
      const isUnderWay = (pending.get(task)?.replicate.size ?? 0) > 0;
      if (!isUnderWay && (yield replicate(task)) === undefined) this.noRecipients = true;
    }
    if (unique === 0 || this.noRecipients) policies.delete(this);
  }

  /** The results that would be lost if the worker left now. O(results of the worker). */
  unique(): { readonly count: number; readonly nbytes: number } {
    let count = 0;
    let nbytes = 0;
    const worker = this.manager.cluster.workers.get(this.options.address);
    for (const task of worker?.hasWhat ?? []) {
      if (worker === undefined || hasCopyElsewhere(task, worker)) continue;
      count++;
      nbytes += Math.max(0, task.nbytes);
    }
    return { count, nbytes };
  }
}

function isOnRunning(task: TaskView): boolean {
  return task.whoHas.items.some(({ status }) => status === 'running');
}

function hasCopyElsewhere(task: TaskView, worker: WorkerView): boolean {
  if (task.isActor || task.whoHas.size < 2) return task.isActor;
  return task.whoHas.items.some((other) => other !== worker && !other.status.startsWith('clos'));
}
