/** Results that outlive the cluster: what a client says of tasks whose results are kept. */
import { createHash } from 'node:crypto';
import {
  type FunctionSpec,
  type PersistSpec,
  type StoreSpec,
  YardmasterError,
} from '../../../core/api/index.ts';
import type { PackedTask } from './graph.ts';
import { refuseOption } from './option-checks.ts';

/** What tells which results of a submission are kept, and where. */
export interface Persistence {
  readonly store: StoreSpec | undefined;
  /** Keys whose results were asked for. */
  readonly outputs: ReadonlySet<string>;
  /** Content key of what the submission does not define; undefined: it has none. */
  readonly contentKeyOf: (key: string) => string | undefined;
}

/** Tasks, those that are kept with what their workers need for it, and the content key of each. */
export interface Persisted {
  readonly packed: readonly PackedTask[];
  readonly contentKeys: ReadonlyMap<string, string>;
}

/**
 * Marks the tasks whose results are to be kept.
 * @throws YardmasterError `ERR_GRAPH_INVALID` when there is no store, or a result depends on more than is known
 */
export function withPersistence(
  packed: readonly PackedTask[],
  { store, outputs, contentKeyOf }: Persistence,
): Persisted {
  const contentKeys = contentKeysOf(packed, contentKeyOf);
  const marked = packed.map((item) => {
    const { task, persist = false } = item;
    if (persist === false || (persist === 'graph-outputs' && !outputs.has(task.key))) return item;
    const key = contentKeys.get(task.key);
    if (store === undefined) refuseOption('persist', persist, 'given with resultStore');
    if (key === undefined) throw notReproducible(item, contentKeys);
    const spec: PersistSpec = { store, key };
    return {
      ...item,
      task: { ...task, runSpec: { ...(task.runSpec as FunctionSpec), persist: spec } },
    };
  });
  return { packed: marked, contentKeys };
}

/** A hash of all that the result of each task follows from. Without those whose inputs have none. */
function contentKeysOf(
  packed: readonly PackedTask[],
  outside: (key: string) => string | undefined,
): ReadonlyMap<string, string> {
  const tasks = new Map(packed.map((item) => [item.task.key, item]));
  const found = new Map<string, string | undefined>();
  const stack = [...tasks.keys()];
  for (let key = stack.at(-1); key !== undefined; key = stack.at(-1)) {
    const item = tasks.get(key);
    const before = stack.length;
    if (!found.has(key) && item !== undefined) {
      for (const input of item.task.dependencies) if (!found.has(input)) stack.push(input);
    }
    if (stack.length > before) continue;
    stack.pop();
    if (!found.has(key)) found.set(key, item === undefined ? outside(key) : hashOf(item, found));
  }
  const known = new Map<string, string>();
  for (const [key, hash] of found) if (hash !== undefined && tasks.has(key)) known.set(key, hash);
  return known;
}

function hashOf(
  { task, definition, isReproducible }: PackedTask,
  found: ReadonlyMap<string, string | undefined>,
): string | undefined {
  if (!isReproducible) return undefined;
  const hashing = createHash('sha256').update(definition);
  for (const input of task.dependencies) {
    const hash = found.get(input);
    if (hash === undefined) return undefined;
    hashing.update(hash);
  }
  return hashing.digest('hex');
}

function notReproducible(
  { task, isReproducible }: PackedTask,
  contentKeys: ReadonlyMap<string, string>,
): YardmasterError {
  const input = task.dependencies.find((key) => !contentKeys.has(key));
  const why =
    !isReproducible || input === undefined
      ? 'it is an actor, not pure, has shared memory among its arguments, or is a function of another language'
      : `its input "${input}" may be another one next time; submit that with persist, too, or scatter it`;
  return new YardmasterError(
    'ERR_GRAPH_INVALID',
    `the result of "${task.key}" cannot be kept: ${why}`,
    { key: task.key, ...(input === undefined ? {} : { input }) },
  );
}
