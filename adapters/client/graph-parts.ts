import type { ClientReport } from '../../core/api/index.ts';

/** Tasks that travel in one message. */
const PART_TASKS = 1000;

type Part = Extract<ClientReport, { readonly op: 'graph-part' }>;
type Submitted = Extract<ClientReport, { readonly op: 'update-graph' }>;

/**
 * A graph as it is sent: a large one in parts, so that neither side is busy for long with any of them. The
 * last one is the `update-graph` itself.
 */
export function inParts(graph: Submitted): readonly (Part | Submitted)[] {
  const { tasks, keys } = graph;
  const parts = Math.ceil(Math.max(tasks.length, keys.length) / PART_TASKS) - 1;
  if (parts <= 0) return [graph];
  const part = (index: number): Pick<Part, 'tasks' | 'keys'> => {
    const [from, to] = [index * PART_TASKS, (index + 1) * PART_TASKS];
    return { tasks: tasks.slice(from, to), keys: keys.slice(from, to) };
  };
  return [
    ...Array.from({ length: parts }, (_, index) => ({
      op: 'graph-part' as const,
      stimulusId: graph.stimulusId,
      ...part(index),
    })),
    { ...graph, ...part(parts), parts },
  ];
}
