import type { ClusterState } from '../../state/cluster.ts';
import type { TaskState, WorkerState } from '../../state/task.ts';

interface Keyed {
  readonly key: string;
}

const keyOf = ({ key }: Keyed): string => key;
const addressOf = ({ address }: { readonly address: string }): string => address;

/** Everything that the scheduler knows of tasks, workers and clients, as plain data. O(all of it). */
export function describeCluster(cluster: ClusterState): Readonly<Record<string, unknown>> {
  return {
    tasks: [...cluster.tasks.values()].map(describeTask),
    workers: cluster.workersByRank.map(describeWorker),
    clients: [...cluster.clients.values()].map((client) => ({
      key: client.key,
      lastSeenMs: client.lastSeenMs,
      wantsWhat: [...client.wantsWhat].map(keyOf),
    })),
  };
}

function describeTask(task: TaskState): Readonly<Record<string, unknown>> {
  return {
    key: task.key,
    state: task.state,
    group: task.group.name,
    priority: task.priority,
    dependencies: [...task.dependencies].map(keyOf),
    dependents: [...task.dependents].map(keyOf),
    waitingOn: [...task.waitingOn].map(keyOf),
    whoHas: task.whoHas.items.map(addressOf),
    whoWants: task.whoWants.items.map(keyOf),
    processingOn: task.processingOn?.address,
    nbytes: task.nbytes,
    type: task.type,
    runId: task.runId,
    retries: task.retries,
    suspicious: task.suspicious,
    replicas: task.replicas,
    blame: task.exceptionBlame?.key,
    exception: task.failure?.exceptionText,
  };
}

function describeWorker(worker: WorkerState): Readonly<Record<string, unknown>> {
  return {
    ...worker.identity,
    status: worker.status,
    occupancyS: worker.occupancyS,
    processing: [...worker.processing].map(keyOf),
    hasWhat: [...worker.hasWhat].map(keyOf),
    usedResources: [...worker.usedResources],
    metrics: worker.metrics,
    lastSeenMs: worker.lastSeenMs,
  };
}
