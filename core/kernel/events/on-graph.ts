/** A client submits a graph. Source: Dask's `update_graph`. */
import type { UpdateGraph } from '../../messages/stimulus.ts';
import { addWant } from '../../state/relations.ts';
import {
  byPriority,
  isSortedByPriority,
  type TaskState,
  type ClientState,
} from '../../state/task.ts';
import { isDone } from '../../state/task-state-name.ts';
import { reportState } from '../transitions/client-reports.ts';
import { refuseCycle, reportLost, reportSubmitted } from '../graph/graph-answers.ts';
import { GraphIntake } from '../graph/graph-intake.ts';
import { TaskLinker } from '../graph/task-linker.ts';
import { planGraph } from '../graph/graph-walk.ts';
import { clientOnDemand } from './on-client.ts';
import { showGraph } from '../graph/prepare.ts';
import { ranksOf } from '../graph/ranks.ts';
import type { KernelScope } from '../scope.ts';
import { settle } from '../transitions/transition-loop.ts';

/** O(tasks log tasks + dependencies), unless it is to be taken in by slices. */
export function onUpdateGraph(scope: KernelScope, stimulus: UpdateGraph): void {
  const client = clientOnDemand(scope, stimulus.client);
  if (stimulus.sliceTasks !== undefined) {
    scope.intakes.push(new GraphIntake(scope, stimulus, client));
    return;
  }
  const isAmidAnother = scope.intakes.length > 0;
  const plan = planGraph(scope.cluster, stimulus.tasks, stimulus.keys, isAmidAnother);
  if (plan.cycle !== undefined) {
    refuseCycle(scope, client, stimulus.keys, plan.cycle);
    plan.restoreIndices();
    return;
  }
  reportLost(scope, client, plan.lost);
  const ranks = plan.order.length === 0 ? [] : ranksOf(scope, stimulus, plan);
  const taker = new TaskLinker(scope, stimulus, plan, ranks);
  taker.take(0, plan.order.length);
  taker.finish();
  plan.restoreIndices();
  const { touched, fresh } = taker;
  for (const key of plan.keys) addWant(client, scope.cluster.tasks.get(key) as TaskState);
  if (fresh !== undefined) showGraph(scope, fresh);
  recommendTouched(scope, touched);
  reportSubmitted(scope, client, plan.keys, touched);
  const settled = wantedAndDone(scope, client, plan.keys);
  settle(scope);
  // What gets its result or its failure in this very stimulus has been reported by its transition.
  for (const task of settled) reportState(scope, task, client);
}

/** One slice more of the oldest graph that is being taken in. No-op when there is none. */
export function onContinueGraph(scope: KernelScope): void {
  const [intake] = scope.intakes;
  if (intake?.advance() === true) scope.intakes.shift();
}

/** Wanted tasks whose result or failure was there before this graph. */
function wantedAndDone(
  { cluster }: KernelScope,
  client: ClientState,
  keys: readonly string[],
): TaskState[] {
  const done: TaskState[] = [];
  for (const key of keys) {
    const task = cluster.tasks.get(key);
    if (task !== undefined && client.wantsWhat.has(task) && isDone(task.state)) done.push(task);
  }
  return done;
}

/** The best task last, so that it is followed first. */
function recommendTouched(scope: KernelScope, touched: readonly TaskState[]): void {
  // A depth-first order comes out of the walk sorted already.
  const sorted = isSortedByPriority(touched) ? touched : touched.toSorted(byPriority);
  for (let index = sorted.length - 1; index >= 0; index--) {
    const task = sorted[index] as TaskState;
    if (task.state === 'released' && task.runSpec !== undefined) scope.recommend(task, 'waiting');
  }
}
