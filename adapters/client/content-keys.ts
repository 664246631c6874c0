import { createHash } from 'node:crypto';
import {
  type FunctionSpec,
  type PersistSpec,
  type StoreSpec,
  YardmasterError,
} from '../../core/api/index.ts';
import { completedKey } from '../tasks/index.ts';
import type { PackedTask } from './graph.ts';
import { hashOfCall } from './keys.ts';
import { refuseOption } from './options.ts';
import { pushTo } from '../../core/util/collections.ts';

// Results that outlive the cluster: what they are kept by.

/** The key of a kept result: a hash of all that it follows from, or the parts of which that hash is made later. */
export type ContentKey = string | ByResult;

/** Of a result whose dependents are kept by its digest: it names such a digest, or depends on such a result. */
export interface ByResult {
  /** As that of a {@link PersistSpec}. */
  readonly key: string;
  readonly inputs?: readonly (readonly [task: string, key: ContentKey])[];
  /** The store that has its digest. */
  readonly store: StoreSpec;
}

/** The choice of the results of a submission that are kept, and their store. */
interface Persistence {
  readonly store: StoreSpec | undefined;
  /** Keys whose results were asked for. */
  readonly outputs: ReadonlySet<string>;
  /** Content key of what the submission does not define; undefined: it has none. */
  readonly contentKeyOf: (key: string) => ContentKey | undefined;
  /** The client that submits. */
  readonly client: string;
}

/** Tasks, those that are kept with what their workers need for it, and the content key of each. */
export interface Persisted {
  readonly packed: readonly PackedTask[];
  readonly contentKeys: ReadonlyMap<string, ContentKey>;
}

/** The content keys behind what travels of them, for the look-up before it travels. */
const byResult = new WeakMap<PersistSpec, ByResult>();

/** Undefined when the key of the description is the content key. */
export function contentKeyBehind(spec: PersistSpec): ByResult | undefined {
  return byResult.get(spec);
}

/**
 * Marks the tasks whose results are to be kept.
 * @throws YardmasterError `ERR_GRAPH_INVALID` when there is no store, or a result depends on more than is known
 */
export function withPersistence(packed: readonly PackedTask[], choice: Persistence): Persisted {
  const { store, outputs } = choice;
  const chosen = packed.find(({ persist = false }) => persist !== false);
  if (store === undefined)
    return refuseOption('persist', chosen?.persist, 'given with resultStore');
  const contentKeys = contentKeysOf(packed, choice, store);
  const marked = packed.map((item) => {
    const { task, persist = false } = item;
    const key = contentKeys.get(task.key);
    const isBetween = !outputs.has(task.key) && typeof key !== 'object';
    if (persist === false || (persist === 'graph-outputs' && isBetween)) return item;
    if (key === undefined) throw notReproducible(item, contentKeys);
    const spec = persistSpec(
      item,
      key,
      (input) => contentKeys.get(input) ?? choice.contentKeyOf(input),
      { store, client: choice.client },
    );
    const runSpec = { ...(task.runSpec as FunctionSpec), persist: spec };
    return { ...item, task: { ...task, runSpec } };
  });
  return { packed: marked, contentKeys };
}

function persistSpec(
  item: PackedTask,
  key: ContentKey,
  keyOf: (input: string) => ContentKey | undefined,
  { store, client }: { readonly store: StoreSpec; readonly client: string },
): PersistSpec {
  const { dependencies, runSpec } = item.task;
  // A key that its author chose means the same task the next time.
  const isNamed = (runSpec as FunctionSpec).definition !== undefined;
  const isByResult = typeof key === 'object';
  if (!isNamed && !isByResult) return { store, key };
  const inputs = dependencies.map((input) => {
    const its = keyOf(input);
    return [input, typeof its === 'string' ? its : ''] as const;
  });
  const spec = {
    ...{ store, key: isByResult ? key.key : key, inputs },
    ...(isByResult ? { hasDigest: true } : {}),
    ...(isNamed ? { trace: { args: callHashOf(item), client } } : {}),
  };
  if (isByResult) byResult.set(spec, key);
  return spec;
}

/** Finds the content key of each task. Leaves out tasks with an input that has none. */
function contentKeysOf(
  packed: readonly PackedTask[],
  { contentKeyOf }: Persistence,
  store: StoreSpec,
): ReadonlyMap<string, ContentKey> {
  const tasks = new Map(packed.map((item) => [item.task.key, item]));
  const found = new Map<string, ContentKey | undefined>();
  const stack = [...tasks.keys()];
  for (let key = stack.at(-1); key !== undefined; key = stack.at(-1)) {
    const item = tasks.get(key);
    const before = stack.length;
    if (!found.has(key) && item !== undefined) {
      for (const input of item.task.dependencies) if (!found.has(input)) stack.push(input);
    }
    if (stack.length > before) continue;
    stack.pop();
    if (found.has(key)) continue;
    found.set(key, item === undefined ? contentKeyOf(key) : keyFor(item, found, store));
  }
  const known = new Map<string, ContentKey>();
  for (const [key, hash] of found) if (hash !== undefined && tasks.has(key)) known.set(key, hash);
  return known;
}

function keyFor(
  item: PackedTask,
  found: ReadonlyMap<string, ContentKey | undefined>,
  store: StoreSpec,
): ContentKey | undefined {
  const { task, definition, variesAs, contentKey } = item;
  if (variesAs !== undefined) return undefined;
  const hashing = createHash('sha256').update(definition);
  const inputs: [string, ContentKey][] = [];
  let isOpen = false;
  for (const input of task.dependencies) {
    const key = found.get(input);
    if (key === undefined) return undefined;
    inputs.push([input, key]);
    if (typeof key === 'string') hashing.update(key);
    else isOpen = true;
  }
  if (isOpen) {
    // The keys of its inputs may follow from what is left out here.
    const { version } = task.runSpec as FunctionSpec;
    return { key: completedKey(callHashOf(item), [version]), inputs, store };
  }
  const key = hashing.digest('hex');
  return contentKey === undefined ? key : { key, store };
}

function callHashOf({ task, content }: PackedTask): string {
  const { module, name, each = [] } = task.runSpec as FunctionSpec;
  return hashOfCall({ module, name: `${name}[${each.join()}]` }, content);
}

function notReproducible(
  { task, variesAs }: PackedTask,
  contentKeys: ReadonlyMap<string, ContentKey>,
): YardmasterError {
  const input = task.dependencies.find((key) => !contentKeys.has(key));
  const why =
    variesAs ??
    `its input "${input}" may be another one next time; submit that with persist, too, or scatter it`;
  return new YardmasterError(
    'ERR_GRAPH_INVALID',
    `the result of "${task.key}" cannot be kept: ${why}`,
    { key: task.key, input },
  );
}

/** Inputs of which each counts by its result, once each. */
function openInputs({ inputs = [] }: ByResult): Set<ByResult> {
  const open = new Set<ByResult>();
  for (const [, key] of inputs) if (typeof key === 'object') open.add(key);
  return open;
}

/** Finds content keys by the digests that stores have, from results without such inputs upwards. */
export class ResultKeys {
  /** Of those whose inputs all have digests. */
  readonly keys = new Map<ByResult, string>();
  readonly digests = new Map<ByResult, string>();

  /**
   * O(results and inputs); each digest is read once.
   * @param readDigests - of results with these keys, in their order; undefined: the store has none
   */
  async resolve(
    wanted: Iterable<ByResult>,
    readDigests: (some: readonly [ByResult, string][]) => Promise<readonly (string | undefined)[]>,
  ): Promise<void> {
    const users = new Map<ByResult, ByResult[]>();
    const missing = new Map<ByResult, number>();
    const seen = new Set(wanted);
    let level: [ByResult, string][] = [];
    for (const result of seen) {
      const open = openInputs(result);
      missing.set(result, open.size);
      if (open.size === 0) level.push([result, result.key]);
      for (const input of open) {
        seen.add(input);
        pushTo(users, input, result);
      }
    }
    while (level.length > 0) {
      const digests = await readDigests(level);
      const next: [ByResult, string][] = [];
      for (const [at, [result, key]] of level.entries()) {
        this.keys.set(result, key);
        const digest = digests[at];
        if (digest === undefined) continue;
        this.digests.set(result, digest);
        for (const user of users.get(result) ?? []) {
          const left = (missing.get(user) ?? 0) - 1;
          missing.set(user, left);
          if (left === 0) next.push([user, this.keyOf(user)]);
        }
      }
      level = next;
    }
  }

  private keyOf({ key, inputs = [] }: ByResult): string {
    return completedKey(
      key,
      inputs.map(([, its]) => (typeof its === 'string' ? its : (this.digests.get(its) as string))),
    );
  }
}
