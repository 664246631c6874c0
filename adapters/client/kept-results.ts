import type {
  FunctionSpec,
  GraphTask,
  PersistSpec,
  ResultStore,
  StoreSpec,
} from '../../core/api/index.ts';
import { show } from '../../core/shared/words.ts';
import { digestKey, readTrace, type ComputedBecause, warnUnasked } from '../tasks/index.ts';
import { type ByResult, type ContentKey, contentKeyBehind, ResultKeys } from './content-keys.ts';
import type { Writable } from './options.ts';

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
  const results = tasks.flatMap((task) => contentKeyIn(task) ?? []);
  const found = await resolveKeys(results, openResultStore);
  const byKey = new Map(tasks.map((task) => [task.key, task]));
  const needed = new Set(keys);
  let level: readonly GraphTask[] = tasks.filter(({ key }) => needed.has(key));
  while (level.length > 0) {
    const next: GraphTask[] = [];
    for (let at = 0; at < level.length; at += LOOKUPS_AT_ONCE) {
      const some = level.slice(at, at + LOOKUPS_AT_ONCE);
      for (const task of await Promise.all(
        some.map((open) => asKept(open, found, openResultStore)),
      )) {
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

function contentKeyIn({ runSpec }: GraphTask): ByResult | undefined {
  const { persist } = runSpec as FunctionSpec;
  return persist === undefined ? undefined : contentKeyBehind(persist);
}

/** The task as it is, or as one that is read: it needs no inputs, and nothing that only the call of its function would take. */
async function asKept(
  task: GraphTask,
  { keys, digests }: ResultKeys,
  openStore: OpenStore,
): Promise<GraphTask> {
  const spec = task.runSpec as FunctionSpec;
  const { persist } = spec;
  if (persist === undefined || persist.isKept === true) return task;
  const { store } = persist;
  const content = contentKeyBehind(persist);
  const key = content === undefined ? persist.key : keys.get(content);
  if (key === undefined || !(await isKept({ store, key }, task.key, openStore))) return task;
  const hasDigest = content !== undefined && !digests.has(content);
  const runSpec: FunctionSpec = { ...spec, persist: { store, key, hasDigest, isKept: true } };
  const read: Writable<GraphTask> = { ...task, dependencies: [], runSpec };
  delete read.limit;
  delete read.resources;
  return read;
}

async function resolveKeys(
  results: readonly ByResult[],
  openStore: OpenStore,
): Promise<ResultKeys> {
  const found = new ResultKeys();
  if (results.length === 0) return found;
  await found.resolve(results, async (some) => {
    const digests: (string | undefined)[] = [];
    for (let at = 0; at < some.length; at += LOOKUPS_AT_ONCE) {
      const now = some.slice(at, at + LOOKUPS_AT_ONCE);
      digests.push(
        ...(await Promise.all(now.map(([{ store }, key]) => readDigest(store, key, openStore)))),
      );
    }
    return digests;
  });
  return found;
}

async function readDigest(
  store: StoreSpec,
  key: string,
  openStore: OpenStore,
): Promise<string | undefined> {
  try {
    const found = await (await openStore(store)).read(digestKey(key));
    const digest = Buffer.from(found?.value ?? []).toString('latin1');
    return /^[0-9a-f]{64}$/.test(digest) ? digest : undefined;
  } catch (error) {
    warnUnasked(store, `the digest of ${key}`, error);
    return undefined;
  }
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
export async function forgetKept(
  store: StoreSpec,
  contentKeys: readonly ContentKey[],
): Promise<void> {
  const { openResultStore } = await import('../stores/open-result-store.ts');
  const opened = await openResultStore(store);
  const results = contentKeys.filter((key) => typeof key === 'object');
  const { keys } = await resolveKeys(results, openResultStore);
  for (const content of contentKeys) {
    const key = typeof content === 'string' ? content : keys.get(content);
    if (key === undefined) continue;
    await opened.delete(key);
    if (typeof content === 'object') await opened.delete(digestKey(key));
  }
}

/** The reason for which the result of a task was computed, and not read. */
export interface ComputationReason {
  readonly key: string;
  /**
   * False: this client found it, or has not got it yet; the rest tells of the last computation. Undefined where that is
   * unknown: only of keys that their author chose is a trace kept.
   */
  readonly isComputed: boolean | undefined;
  readonly because: ComputedBecause | 'unknown';
  /** Inputs that have changed. */
  readonly changed: readonly string[];
  /** Undefined where it is unknown. */
  readonly computedAt: Date | undefined;
}

/** @param client - that asks */
export async function explainKept(
  store: StoreSpec,
  tasks: readonly string[],
  client: string,
): Promise<ComputationReason[]> {
  const { openResultStore } = await import('../stores/open-result-store.ts');
  const opened = await openResultStore(store);
  const reasons: ComputationReason[] = [];
  for (const key of tasks) {
    const trace = await readTrace(opened, key);
    const { because = 'unknown', changed = [], atMs } = trace ?? {};
    const computedAt = atMs === undefined ? undefined : new Date(atMs);
    const isComputed = trace?.clients.includes(client);
    reasons.push({ key, isComputed, because, changed, computedAt });
  }
  return reasons;
}
