/** Graphs in DOT, the language of Graphviz, with costs as attributes: an arrow goes from a task to one that needs it. */
import { basename } from 'node:path';
import type parseDot from 'dotparser';
import type { NodeId, Stmt, Subgraph } from 'dotparser';
import { parseBytes, parseDurationMs } from '../../core/util/units.ts';
import { GraphFile } from './graph-file.ts';
import { type CostedTask, graphWorkload, type Workload } from './workload.ts';

/** The attributes that are read. The first that is there counts. */
const DURATIONS = ['duration', 'runtime', 'time', 'cost', 'weight'];
const SIZES = ['nbytes', 'bytes', 'size', 'output'];
const SENT_SIZES = ['nbytes', 'bytes', 'size', 'data', 'weight'];

/** The most arrows: an arrow between two groups stands for all pairs. */
const ARROWS_MAX = 20_000_000;

/**
 * Reads a graph. Numbers are seconds and bytes, and may have units. Without a size a result is as large as the largest
 * of the arrows that begin at its task.
 *
 * @param source - path of the file, for messages
 * @throws YardmasterError `ERR_GRAPH_INVALID`, `ERR_GRAPH_CYCLE` with file and task
 */
export async function dotWorkload(text: string, source: string): Promise<Workload> {
  const { default: parse } = await import('dotparser');
  const file = new GraphFile(source);
  const [graph, another] = parsed(text, parse, file);
  if (graph?.type !== 'digraph') {
    throw file.error('has no digraph: the graph of tasks needs arrows (digraph { a -> b })');
  }
  if (another !== undefined) throw file.error('has more than one graph; leave one of them');
  const reader = new DotReader(file);
  reader.read(graph.children, { node: {}, edge: {} });
  return graphWorkload(basename(source), reader.tasks(), { source });
}

type Parse = typeof parseDot;

function parsed(text: string, parse: Parse, file: GraphFile): ReturnType<Parse> {
  try {
    return parse(text);
  } catch (cause) {
    const { message, location } = cause as Error & {
      readonly location?: { readonly start: { readonly line: number; readonly column: number } };
    };
    const { line, column } = location?.start ?? {};
    const place = line === undefined ? '' : ` in line ${line}, column ${String(column)}`;
    throw file.error(`is no DOT${place}: ${message}`, { cause });
  }
}

type Attributes = Readonly<Record<string, unknown>>;

/** The attributes of nodes and arrows that follow. */
interface Defaults {
  node: Attributes;
  edge: Attributes;
}

interface Node {
  attributes: Attributes;
  readonly needs: string[];
  /** Bytes of the largest arrow that begins here. */
  sentBytes: number;
}

class DotReader {
  private readonly nodes = new Map<string, Node>();
  private arrowCount = 0;

  constructor(private readonly file: GraphFile) {}

  /** @returns the nodes that are named */
  read(statements: readonly Stmt[], defaults: Defaults): string[] {
    return statements.flatMap((statement) => {
      switch (statement.type) {
        case 'attr_stmt': {
          const { target } = statement;
          if (target !== 'graph') {
            defaults[target] = { ...defaults[target], ...attributesOf(statement) };
          }
          return [];
        }
        case 'node_stmt': {
          const [key = ''] = this.keysOf(statement.node_id, defaults);
          const node = this.nodes.get(key) as Node;
          node.attributes = { ...node.attributes, ...attributesOf(statement) };
          return [key];
        }
        case 'edge_stmt': {
          const ends = statement.edge_list.map((end) => this.keysOf(end, defaults));
          const attributes = { ...defaults.edge, ...attributesOf(statement) };
          ends.forEach((keys, at) => this.connect(ends[at - 1] ?? [], keys, attributes));
          return ends.flat();
        }
        case 'subgraph':
          return this.keysOf(statement, defaults);
      }
    });
  }

  tasks(): CostedTask[] {
    return [...this.nodes].map(([key, { attributes, needs, sentBytes }]) => {
      const subject = `the node "${key}"`;
      const ms = this.cost(attributes, DURATIONS, subject, parseDurationMs);
      if (ms === undefined) {
        throw this.file.error(
          `has no duration for ${subject}; give it one of ${DURATIONS.join(', ')}, in seconds or with a unit`,
          { task: key },
        );
      }
      const nbytes = this.cost(attributes, SIZES, subject, parseBytes) ?? sentBytes;
      const { prefix } = attributes;
      const kind = typeof prefix === 'string' ? { prefix } : {};
      return { key, needs, durationS: ms / 1000, nbytes, ...kind };
    });
  }

  private keysOf(end: NodeId | Subgraph, defaults: Defaults): string[] {
    if (end.type === 'subgraph') return [...new Set(this.read(end.children, { ...defaults }))];
    const key = String(end.id);
    if (!this.nodes.has(key)) {
      this.nodes.set(key, { attributes: defaults.node, needs: [], sentBytes: 0 });
    }
    return [key];
  }

  private connect(from: readonly string[], to: readonly string[], attributes: Attributes): void {
    this.arrowCount += from.length * to.length;
    if (this.arrowCount > ARROWS_MAX) {
      throw this.file.error(`has more than ${ARROWS_MAX} arrows, the most that are read`);
    }
    for (const start of from) {
      const subject = `an arrow of the node "${start}"`;
      const bytes = this.cost(attributes, SENT_SIZES, subject, parseBytes) ?? 0;
      const node = this.nodes.get(start) as Node;
      node.sentBytes = Math.max(node.sentBytes, bytes);
      for (const end of to) this.nodes.get(end)?.needs.push(start);
    }
  }

  /** Undefined where none of the attributes is there. */
  private cost(
    attributes: Attributes,
    names: readonly string[],
    subject: string,
    read: (value: unknown) => number | undefined,
  ): number | undefined {
    const name = names.find((each) => attributes[each] !== undefined);
    if (name === undefined) return undefined;
    const value = read(attributes[name]) ?? NaN;
    const isAmount = value >= 0 && value < Infinity;
    return this.file.amount(isAmount ? value : attributes[name], name, subject);
  }
}

function attributesOf({ attr_list: list }: Extract<Stmt, { attr_list: unknown }>): Attributes {
  return Object.fromEntries(list.map(({ id, eq }) => [String(id).toLowerCase(), eq]));
}
