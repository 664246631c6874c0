/** Compiles only while the state objects fit the views that plugins see. */
import type { ClusterView, TaskView, WorkerView } from '../../core/api/index.ts';
import type { ClusterState } from '../../core/state/cluster.ts';
import type { TaskState, WorkerState } from '../../core/state/task.ts';

export const asTaskView = (task: TaskState): TaskView => task;
export const asWorkerView = (worker: WorkerState): WorkerView => worker;
export const asClusterView = (cluster: ClusterState): ClusterView => cluster;
