import type { ClusterState } from '../state/cluster.ts';
import type { TaskState, WorkerState } from '../state/task.ts';
import { Digest } from './digest.ts';

/** A hash of what the kernel knows: tasks, workers and clients. O(tasks + replicas + workers). */
export function digestOfState(cluster: ClusterState): string {
  const digest = new Digest();
  for (const task of cluster.tasks.values()) addTask(digest, task);
  for (const worker of cluster.workersByRank) addWorker(digest, worker);
  for (const client of cluster.clients.keys()) digest.addText(client);
  return digest.toString();
}

function addTask(digest: Digest, task: TaskState): void {
  digest.addText(task.key);
  digest.addText(task.state);
  for (const number of [task.nbytes, task.generation, task.rank, task.negatedUserPriority]) {
    digest.add(number);
  }
  for (const number of [task.runId, task.dependencies.length, task.dependentCount]) {
    digest.add(number);
  }
  if (task.processingOn !== undefined) digest.add(task.processingOn.rank);
  for (const worker of task.whoHas) digest.add(worker.rank);
  for (const client of task.whoWants) digest.addText(client.key);
}

function addWorker(digest: Digest, worker: WorkerState): void {
  digest.addText(worker.address);
  digest.addText(worker.status);
  for (const number of [worker.processing.size, worker.hasWhat.size, worker.nbytes]) {
    digest.add(number);
  }
  digest.add(worker.occupancyS);
}
