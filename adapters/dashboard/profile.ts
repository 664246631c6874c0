import { type CallTree, type TaskProfile, YardmasterError } from '../../core/api/index.ts';
import type { ProfileAnswer } from './page-messages.ts';
import type { ApiSource } from './routes.ts';

/** Milliseconds that workers have for an answer. */
const TIMEOUT_MS = 5000;
/** Calls with a smaller share of all samples are not shown. */
const SHARE_MIN = 0.002;

/** Merges the samples of the calls of running tasks over all workers: those of JavaScript, and Dask's. */
export async function profileOf(source: ApiSource, prefix: string): Promise<ProfileAnswer> {
  const request = { method: 'inspect', parameters: { what: 'profile' }, timeoutMs: TIMEOUT_MS };
  const [answers, ofDask] = await Promise.all([
    source.run('broadcast', request) as Promise<readonly (readonly [string, Answer])[]>,
    daskProfile(source, prefix),
  ]);
  const profiles = answers.flatMap(([, answer]) => answer.profile ?? []);
  const { workers } = source.cluster;
  const inPython = answers.filter(
    ([address]) => workers.get(address)?.language === 'python',
  ).length;
  const trees = profiles.flatMap(({ prefixes }) => Object.values(prefixes));
  const samples = new Map<string, number>();
  for (const { name, count } of trees) samples.set(name, (samples.get(name) ?? 0) + count);
  const dask: readonly CallTree[] =
    ofDask.length === 0 ? [] : [treeOf(prefix === '' ? 'tasks of Dask' : prefix, ofDask)];
  const shown = merged([...trees.filter(({ name }) => prefix === '' || name === prefix), ...dask]);
  const tree = prefix === '' ? treeOf('all tasks', shown) : (shown[0] ?? treeOf(prefix, []));
  return {
    tree: pruned(tree, SHARE_MIN * tree.count),
    intervalMs: profiles[0]?.intervalMs ?? 10,
    sinceS: profiles.reduce((sinceMs, one) => Math.min(sinceMs, one.sinceMs), Date.now()) / 1000,
    prefixes: [...samples].toSorted(([, a], [, b]) => b - a).map(([name]) => name),
    workers: profiles.length + inPython,
    silent: answers.length - profiles.length - inPython,
  };
}

interface Answer {
  readonly profile?: TaskProfile | null;
}

/** Dask's workers sample by themselves; the plugin `dask` asks them. */
async function daskProfile(source: ApiSource, prefix: string): Promise<readonly CallTree[]> {
  try {
    const tree = await source.run('dask.profile', prefix === '' ? {} : { key: prefix });
    return fromDask(tree).children;
  } catch (error) {
    if (YardmasterError.is(error, 'ERR_PROTOCOL')) return [];
    throw error;
  }
}

function fromDask(tree: unknown): CallTree {
  const {
    count = 0,
    children = {},
    description = {},
  } = tree as {
    readonly count?: number;
    readonly children?: ReadonlyMap<string, unknown> | Readonly<Record<string, unknown>>;
    readonly description?: Readonly<{ name?: string; filename?: string; line_number?: number }>;
  };
  const callees = children instanceof Map ? [...children.values()] : Object.values(children);
  return {
    name: description.name ?? '',
    url: description.filename ?? '',
    line: description.line_number ?? 0,
    count,
    children: callees.map(fromDask),
  };
}

/** Calls of the same function from the same place are one. O(calls). */
function merged(trees: readonly CallTree[]): readonly CallTree[] {
  const groups = new Map<string, CallTree[]>();
  for (const tree of trees) {
    const frame = `${tree.name} ${tree.url} ${tree.line}`;
    const same = groups.get(frame);
    if (same === undefined) groups.set(frame, [tree]);
    else same.push(tree);
  }
  return Array.from(groups.values(), (same) => ({
    ...(same[0] as CallTree),
    count: sumOf(same),
    children: merged(same.flatMap(({ children }) => children)),
  }));
}

const sumOf = (trees: readonly CallTree[]): number =>
  trees.reduce((sum, { count }) => sum + count, 0);

function treeOf(name: string, children: readonly CallTree[]): CallTree {
  return { name, url: '', line: 0, count: sumOf(children), children };
}

function pruned(tree: CallTree, countMin: number): CallTree {
  const children = tree.children.filter(({ count }) => count >= countMin);
  return { ...tree, children: children.map((child) => pruned(child, countMin)) };
}
