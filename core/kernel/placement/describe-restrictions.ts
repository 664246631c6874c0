import type { ClusterState } from '../../state/cluster.ts';
import type { TaskState } from '../../state/task.ts';

/** What a task wants of its worker, wish by wish, and what there is of that; empty when any will do. */
export function describeRestrictions(cluster: ClusterState, task: TaskState): string {
  const { workers, names, hosts, resources } = task.restrictions ?? {};
  const wishes: string[] = [];
  const language = cluster.languageFor(task);
  if (language !== undefined) wishes.push(`a worker whose language is ${language}`);
  if (workers !== undefined) wishes.push(`worker ${list(workers)}`);
  if (names !== undefined) wishes.push(`worker or host ${list(names)}`);
  if (hosts !== undefined) wishes.push(`host or worker name ${list(hosts)}`);
  for (const [resource, amount] of resources ?? []) {
    const offers = [...(cluster.resources.get(resource)?.values() ?? [])];
    const largest = offers.reduce((most, offer) => Math.max(most, offer), -Infinity);
    const most = offers.length === 0 ? 'no worker offers any' : `at most ${largest} on one`;
    wishes.push(`${amount} ${resource} (${most})`);
  }
  return wishes.join(', ');
}

/** Why a task that has restrictions finds no worker among those that run. */
export function unsatisfied(cluster: ClusterState, task: TaskState): string {
  return `no running worker satisfies its restrictions: ${describeRestrictions(cluster, task)}`;
}

function list(names: ReadonlySet<string>): string {
  return [...names].join(' or ');
}
