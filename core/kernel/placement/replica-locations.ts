/** Where results are, for messages. */
import type { ReplicaLocations } from '../../messages/to-worker.ts';
import type { TaskState, WorkerState } from '../../state/task.ts';
import type { SmallSet } from '../../util/collections/small-set.ts';

const NO_LOCATIONS: ReplicaLocations = { keys: [], nbytes: [], whoHas: [] };

/**
 * Says where the inputs of tasks are. Tasks that wait for the same single result are sent one after the
 * other, and share what is said about it.
 */
export class InputLocations {
  private task: TaskState | undefined = undefined;
  private whoHas: SmallSet<WorkerState> | undefined = undefined;
  private nbytes = -1;
  private latest = NO_LOCATIONS;

  /** O(dependencies + their replicas). */
  of(dependencies: readonly TaskState[]): ReplicaLocations {
    if (dependencies.length !== 1) {
      return dependencies.length === 0 ? NO_LOCATIONS : replicaLocations(dependencies);
    }
    const task = dependencies[0] as TaskState;
    const { whoHas, nbytes } = task;
    if (task !== this.task || whoHas !== this.whoHas || nbytes !== this.nbytes) {
      this.task = task;
      this.whoHas = whoHas;
      this.nbytes = nbytes;
      this.latest = replicaLocations(dependencies);
    }
    return this.latest;
  }
}

/** Where these results are, for a message. */
export function replicaLocations(tasks: readonly TaskState[]): ReplicaLocations {
  const [only] = tasks;
  if (tasks.length === 1 && only !== undefined) {
    return { keys: [only.key], nbytes: [only.nbytes], whoHas: [addresses(only.whoHas.items)] };
  }
  return {
    keys: tasks.map(keyOf),
    nbytes: tasks.map(sizeOf),
    whoHas: tasks.map(holdersOf),
  };
}

function keyOf(task: TaskState): string {
  return task.key;
}

function sizeOf(task: TaskState): number {
  return task.nbytes;
}

function holdersOf(task: TaskState): readonly string[] {
  return addresses(task.whoHas.items);
}

function addresses(workers: readonly WorkerState[]): readonly string[] {
  const [first] = workers;
  // Most results have one holder; its list is made once.
  if (workers.length === 1 && first !== undefined) return first.soleAddress;
  return workers.map((worker) => worker.address);
}
