import type { ClusterView, TaskStateName } from '../../../core/api/index.ts';

/** Tasks that are drawn one by one. */
const TASKS_MAX = 2000;

/** Groups that are drawn; beyond that, prefixes are. */
const GROUPS_MAX = 400;

type States = Readonly<Partial<Record<TaskStateName, number>>>;

/** Nodes with their tasks by state, and the edges between them by their numbers. */
export interface DrawnGraph {
  readonly kind: 'tasks' | 'groups' | 'prefixes';
  /** Tasks in all. */
  readonly total: number;
  readonly nodes: readonly (readonly [name: string, states: States])[];
  readonly edges: readonly (readonly [from: number, to: number])[];
}

/** The graph, grouped when it has too many tasks to be drawn. */
export function graphOf(cluster: ClusterView): DrawnGraph {
  const total = cluster.tasks.size;
  if (total <= TASKS_MAX) return { kind: 'tasks', total, ...tasksOf(cluster) };
  const isFine = cluster.groups.size <= GROUPS_MAX;
  return { kind: isFine ? 'groups' : 'prefixes', total, ...groupsOf(cluster, isFine) };
}

function tasksOf({ tasks }: ClusterView): Pick<DrawnGraph, 'nodes' | 'edges'> {
  const numbers = new Map([...tasks.keys()].map((key, number) => [key, number]));
  const nodes = Array.from(tasks.values(), ({ key, state }) => [key, { [state]: 1 }] as const);
  const edges: (readonly [number, number])[] = [];
  for (const task of tasks.values()) {
    const to = numbers.get(task.key);
    for (const { key } of task.dependencies) {
      const from = numbers.get(key);
      if (from !== undefined && to !== undefined) edges.push([from, to]);
    }
  }
  return { nodes, edges };
}

/** O(groups and their dependencies). */
function groupsOf({ groups }: ClusterView, isFine: boolean): Pick<DrawnGraph, 'nodes' | 'edges'> {
  const nodes: (readonly [string, Partial<Record<TaskStateName, number>>])[] = [];
  const numbers = new Map<string, number>();
  const numberOf = (name: string): number => {
    const known = numbers.get(name);
    if (known !== undefined) return known;
    numbers.set(name, nodes.length);
    return nodes.push([name, {}]) - 1;
  };
  const edges = new Map<string, readonly [number, number]>();
  for (const group of groups.values()) {
    const nameOf = ({ name, prefix }: typeof group): string => (isFine ? name : prefix.name);
    const to = numberOf(nameOf(group));
    const states = nodes[to]?.[1] ?? {};
    for (const [name, count] of Object.entries(group.states)) {
      const state = name as TaskStateName;
      if (count > 0 && state !== 'forgotten') states[state] = (states[state] ?? 0) + count;
    }
    for (const dependency of group.dependencies) {
      const from = numberOf(nameOf(dependency));
      if (from !== to) edges.set(`${from} ${to}`, [from, to]);
    }
  }
  return { nodes, edges: [...edges.values()] };
}
