import type { ClusterState } from '../../state/cluster.ts';
import type { TaskState } from '../../state/task.ts';

/**
 * The restrictions of a task, one by one, and the workers that match each; empty when any worker
 * will do.
 */
export function describeRestrictions(cluster: ClusterState, task: TaskState): string {
  const { workers, names, hosts, resources } = task.restrictions ?? {};
  const demands: string[] = [];
  const language = cluster.languageFor(task);
  if (language !== undefined) demands.push(`a worker whose language is ${language}`);
  if (workers !== undefined) demands.push(`worker ${list(workers)}`);
  if (names !== undefined) demands.push(`worker or host ${list(names)}`);
  if (hosts !== undefined) demands.push(`host or worker name ${list(hosts)}`);
  for (const [resource, amount] of resources ?? []) {
    const offers = [...(cluster.resources.get(resource)?.values() ?? [])];
    const largest = offers.reduce((most, offer) => Math.max(most, offer), -Infinity);
    const most = offers.length === 0 ? 'no worker offers any' : `at most ${largest} on one`;
    demands.push(`${amount} ${resource} (${most})`);
  }
  return demands.join(', ');
}

/** Why a task that has restrictions finds no worker among those that run. */
export function unsatisfied(cluster: ClusterState, task: TaskState): string {
  return `no running worker satisfies its restrictions: ${describeRestrictions(cluster, task)}`;
}

function list(names: ReadonlySet<string>): string {
  return [...names].join(' or ');
}
