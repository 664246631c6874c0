/** A client submits a graph. Source: Dask's `update_graph`. */
import type { UpdateGraph } from '../../messages/stimulus.ts';
import { GraphIntake } from '../graph/graph-intake.ts';
import type { KernelScope } from '../scope.ts';
import { clientOnDemand } from './on-client.ts';

/** O(tasks log tasks + dependencies), unless the graph is submitted in slices. */
export function onUpdateGraph(scope: KernelScope, stimulus: UpdateGraph): void {
  const intake = new GraphIntake(scope, stimulus, clientOnDemand(scope, stimulus.client));
  if (stimulus.sliceTasks !== undefined) scope.intakes.push(intake);
  else while (!intake.advance());
}

/** Takes in one more slice of the oldest pending graph. No-op when there is none. */
export function onContinueGraph(scope: KernelScope): void {
  const [intake] = scope.intakes;
  if (intake?.advance() === true) scope.intakes.shift();
}
