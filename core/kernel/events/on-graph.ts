/** A client submits a graph. Source: Dask's `update_graph`. */
import type { GraphTask, UpdateGraph } from '../../messages/stimulus.ts';
import { GraphIntake } from '../graph/graph-intake.ts';
import type { KernelScope } from '../scope.ts';
import { clientOnDemand } from './on-client.ts';
import { unassignedSince } from './on-return.ts';

/** O(tasks log tasks + dependencies), unless the graph is submitted in slices. */
export function onUpdateGraph(scope: KernelScope, stimulus: UpdateGraph): void {
  const intake = new GraphIntake(scope, stimulus, clientOnDemand(scope, stimulus.client));
  if (stimulus.sliceTasks !== undefined) scope.intakes.push(intake);
  else takeInAtOnce(intake);
  if (stimulus.firstRunIds !== undefined) noteFirstRuns(scope, stimulus, stimulus.firstRunIds);
}

function takeInAtOnce(intake: GraphIntake): void {
  try {
    while (!intake.advance());
  } catch (error) {
    intake.abandon();
    throw error;
  }
}

/** From a journal: proofs for results of workers that come back. O(tasks). */
function noteFirstRuns(
  { cluster }: KernelScope,
  { tasks }: UpdateGraph,
  firstRunIds: readonly number[],
): void {
  for (let index = 0; index < tasks.length; index++) {
    const task = cluster.tasks.get((tasks[index] as GraphTask).key);
    const firstRunId = firstRunIds[index] ?? firstRunIds[0] ?? 0;
    if (task?.runId === -1) task.runId = unassignedSince(firstRunId);
  }
}

/** Takes in one more slice of the oldest pending graph. No-op when there is none. */
export function onContinueGraph(scope: KernelScope): void {
  const [intake] = scope.intakes;
  if (intake?.advance() === true) scope.intakes.shift();
}
