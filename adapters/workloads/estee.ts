/**
 * Graphs of the simulator Estee (github.com/It4innovations/estee) in its JSON, and its published data sets: tables with
 * one graph a row, as pandas writes them.
 */
import type { GraphFile, Plain } from './graph-file.ts';
import { type CostedTask, graphWorkload, type Workload } from './workload.ts';

/** Sizes are in MiB. */
const MIB = 2 ** 20;

/**
 * Reads a graph. A task takes what it takes there on one thread; its result is as large as all of its outputs. Tasks
 * with the same estimates and cores are of one kind.
 *
 * @throws YardmasterError `ERR_GRAPH_INVALID`, `ERR_GRAPH_CYCLE` with file and place
 */
export function esteeWorkload(given: unknown, file: GraphFile, name = file.source): Workload {
  const tasks = file.list(given, 'the graph').map((task, at) => file.object(task, `[${at}]`));
  const outputs = tasks.map((task, at) =>
    file
      .list(task['outputs'], `[${at}].outputs`)
      .map((output, number) => file.object(output, `[${at}].outputs[${number}]`)),
  );
  const kinds = new Map<string, string>();
  const costed = tasks.map(({ d, e_d, cpus, inputs }, at): CostedTask => {
    const own = outputs[at] ?? [];
    const nbytes = own.reduce(
      (sum, { s }) => sum + Math.round(MIB * file.amount(s, 's', `[${at}]`)),
      0,
    );
    const kind = JSON.stringify([e_d, cpus, own.map(({ e_s }) => e_s)]);
    const prefix = kinds.get(kind) ?? `f${kinds.size}`;
    kinds.set(kind, prefix);
    const needs = file.list(inputs, `[${at}].inputs`).map((input, number) => {
      const [task, output] = Array.isArray(input) ? (input as unknown[]) : [];
      if (outputs[task as number]?.[output as number] !== undefined) return `t${String(task)}`;
      const given = JSON.stringify(input);
      throw file.error(
        `has the input ${given} at [${at}].inputs[${number}], and no such output; an input is [number of a task, number of one of its outputs]`,
        { field: 'inputs' },
      );
    });
    return { key: `t${at}`, needs, durationS: file.amount(d, 'd', `[${at}]`), nbytes, prefix };
  });
  return graphWorkload(name, costed, { source: file.source });
}

/** Reads all graphs of a data set. Where graphs share a name, the number of the row follows it. */
export function esteeSet({ graph, graph_name: names }: Plain, file: GraphFile): Workload[] {
  const titles = file.object(names, 'graph_name');
  const all = Object.values(titles);
  return Object.entries(file.object(graph, 'graph')).map(([row, text]) => {
    const title = file.text(titles[row], `graph_name.${row}`);
    const isOnly = all.indexOf(title) === all.lastIndexOf(title);
    const parsed = file.json(file.text(text, `graph.${row}`));
    return esteeWorkload(parsed, file, isOnly ? title : `${title}-${row}`);
  });
}
