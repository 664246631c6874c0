import type { WorkerTask } from '../../worker/worker-task.ts';

/** A task as its worker sees it, as plain data. */
export function describeWorkerTask(task: WorkerTask): Readonly<Record<string, unknown>> {
  return {
    key: task.key,
    state: task.state,
    previous: task.previous,
    next: task.next,
    runId: task.runId,
    priority: task.priority,
    dependencies: [...task.dependencies].map(keyOf),
    waitingForData: [...task.waitingForData].map(keyOf),
    holders: [...task.holders],
    comingFrom: task.comingFrom,
    nbytes: task.nbytes,
    type: task.type,
    exception: task.failure?.exceptionText,
  };
}

function keyOf({ key }: { readonly key: string }): string {
  return key;
}
