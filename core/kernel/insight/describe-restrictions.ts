import type { ClusterState } from '../../state/cluster.ts';
import type { TaskState } from '../../state/task.ts';

/** Why no running worker satisfies the restrictions of a task, restriction by restriction. */
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
    const most =
      offers.length === 0 ? 'no worker offers any' : `at most ${Math.max(...offers)} on one`;
    wishes.push(`${amount} ${resource} (${most})`);
  }
  return `no running worker satisfies its restrictions: ${wishes.join(', ')}`;
}

function list(names: ReadonlySet<string>): string {
  return [...names].join(' or ');
}
