import type {
  FunctionSpec,
  GraphTask,
  PersistSpec,
  ResultStore,
  StoreSpec,
} from '../../core/api/index.ts';
import { show } from '../../core/shared/words.ts';
import { warnUnasked } from '../tasks/index.ts';

// What a client asks the stores of results that outlive clusters.

/** Look-ups at a store at the same time. */
const LOOKUPS_AT_ONCE = 32;

type OpenStore = (store: StoreSpec) => Promise<ResultStore>;

/** A graph that is about to be sent. */
export interface OpenTasks {
  readonly tasks: GraphTask[];
  /** Keys whose results are wanted. */
  readonly keys: readonly string[];
}

/**
 * Asks the stores for results that are there, from the wanted keys on: such tasks are read and need no inputs. Tasks
 * that nothing needs any more are left out.
 */
export async function pruneKept({ tasks, keys }: OpenTasks): Promise<void> {
  const { openResultStore } = await import('../stores/open-result-store.ts');
  const byKey = new Map(tasks.map((task) => [task.key, task]));
  const needed = new Set(keys);
  let level: readonly GraphTask[] = tasks.filter(({ key }) => needed.has(key));
  while (level.length > 0) {
    const next: GraphTask[] = [];
    for (let at = 0; at < level.length; at += LOOKUPS_AT_ONCE) {
      const some = level.slice(at, at + LOOKUPS_AT_ONCE);
      for (const task of await Promise.all(some.map((open) => asKept(open, openResultStore)))) {
        byKey.set(task.key, task);
        for (const key of task.dependencies) {
          if (needed.has(key)) continue;
          needed.add(key);
          const input = byKey.get(key);
          if (input !== undefined) next.push(input);
        }
      }
    }
    level = next;
  }
  const left = tasks
    .filter(({ key }) => needed.has(key))
    .map(({ key }) => byKey.get(key) as GraphTask);
  tasks.length = 0;
  for (const task of left) tasks.push(task);
}

/** The task as it is, or as one that is read. */
async function asKept(task: GraphTask, openStore: OpenStore): Promise<GraphTask> {
  const spec = task.runSpec as FunctionSpec;
  const { persist } = spec;
  if (persist === undefined || persist.isKept === true) return task;
  if (!(await isKept(persist, task.key, openStore))) return task;
  const runSpec: FunctionSpec = { ...spec, persist: { ...persist, isKept: true } };
  return { ...task, dependencies: [], runSpec };
}

async function isKept(
  { store, key }: PersistSpec,
  task: string,
  openStore: OpenStore,
): Promise<boolean> {
  try {
    const answer: unknown = await (await openStore(store)).has(key);
    if (typeof answer === 'boolean') return answer;
    throw new TypeError(`its has answered ${show(answer)} instead of true or false`);
  } catch (error) {
    warnUnasked(store, task, error);
    return false;
  }
}

/** Removes results from their store. */
export async function forgetKept(store: StoreSpec, keys: readonly string[]): Promise<void> {
  const { openResultStore } = await import('../stores/open-result-store.ts');
  const opened = await openResultStore(store);
  for (const key of keys) await opened.delete(key);
}
