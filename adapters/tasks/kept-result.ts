/** Results that outlive the cluster: what a run does with its store. */
import { createHash } from 'node:crypto';
import type * as Stores from '../stores/open-result-store.ts';
import {
  type ExecutableTask,
  type ExecutionResult,
  type FunctionSpec,
  messageOf,
  type PersistSpec,
  type ResultStore,
  type StoredResult,
  type StoreSpec,
  YardmasterError,
} from '../../core/api/index.ts';
import { withoutSharedMemory } from '../../core/util/bytes.ts';
import { hasFailures } from './chunk.ts';
import { ContentHash } from './content-hash.ts';
import { checkRefusal, type RunContext } from './context.ts';
import { commonName } from './modules.ts';
import { deserialise } from './serialise.ts';
import { show } from '../../core/shared/words.ts';
import { printable } from '../../core/util/values.ts';

interface KeptRun {
  readonly task: ExecutableTask;
  readonly spec: FunctionSpec;
  readonly context: RunContext;
  readonly nowMs: () => number;
}

type Running = ExecutionResult | Promise<ExecutionResult>;

/**
 * The result of a task from its store, or of its run, which is kept then.
 * @param run - not called when the result is read
 */
export function runKept(run: () => Running, persist: PersistSpec, kept: KeptRun): Running {
  const { inputs = [] } = persist;
  const isOpen = inputs.some(([, hash]) => hash === '');
  if (isOpen || kept.task.isRepeated === true) return readOrRun(run, persist, kept);
  return keepResult(run(), persist, kept);
}

/**
 * Asks the store first: open inputs are known only now, and a worker that has died, or is out of reach, may have computed
 * a task that was assigned before.
 */
async function readOrRun(
  run: () => Running,
  given: PersistSpec,
  kept: KeptRun,
): Promise<ExecutionResult> {
  const { key: task } = kept.task;
  let persist: PersistSpec;
  try {
    persist = completed(given, kept.task);
  } catch (error) {
    warn(given.store, `cannot keep the result of "${task}": ${messageOf(error)}`);
    return run();
  }
  try {
    const found = await read(persist, kept);
    if (found !== undefined) return found;
  } catch (error) {
    warnUnasked(persist.store, task, error);
  }
  return keepResult(run(), persist, kept);
}

/** With the digests of results in place of open inputs. O(bytes of these results). */
function completed(persist: PersistSpec, { inputs: results }: ExecutableTask): PersistSpec {
  const { key, inputs = [] } = persist;
  const hashes = inputs.map(([task, hash]) => {
    return [task, hash === '' ? digestOf(results.get(task)) : hash] as const;
  });
  if (inputs.every(([, hash]) => hash !== '')) return persist;
  const values = hashes.map(([, hash]) => hash);
  return { ...persist, key: completedKey(key, values), inputs: hashes };
}

/** The content key of a task with open inputs. */
export function completedKey(key: string, hashes: readonly string[]): string {
  return sha256(`${key}${hashes.join('')}`);
}

const NO_PREFIX = new Uint8Array(0);

/** Equal results have equal ones, however the engine holds them. @throws when it cannot be read, or is not there */
function digestOf(result: Uint8Array | undefined): string {
  if (result === undefined) throw new TypeError('an input of it is missing');
  const hashing = new ContentHash(NO_PREFIX);
  hashing.add(deserialise(result));
  return hashing.digest();
}

/** The key under which a store has the digest of a result. */
export function digestKey(key: string): string {
  return sha256(`digest\0${key}`);
}

/** The key under which a store has the record of the last run of a task. */
export function traceKey(task: string): string {
  return sha256(`trace\0${task}`);
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** The first of these that differs from the computation before. */
export type ComputedBecause =
  'never computed' | 'function' | 'version' | 'arguments' | 'inputs' | 'dropped';

/** The record of the last run of a task whose key its author chose. */
export interface Trace {
  readonly key: string;
  /** Those whose tasks have computed it: several when they did so at the same time. */
  readonly clients: readonly string[];
  readonly atMs: number;
  readonly fn: string;
  readonly version: string;
  readonly args: string;
  readonly inputs: readonly (readonly [task: string, hash: string])[];
  readonly because: ComputedBecause;
  readonly changed: readonly string[];
}

/** Undefined when there is none, or what is there is none. */
export async function readTrace(store: ResultStore, task: string): Promise<Trace | undefined> {
  const found = await store.read(traceKey(task));
  if (found === undefined) return undefined;
  try {
    const trace = JSON.parse(Buffer.from(found.value).toString()) as Partial<Trace>;
    return Array.isArray(trace.clients) ? (trace as Trace) : undefined;
  } catch {
    return undefined;
  }
}

/** @param isThere - another run has kept the result since this one began */
async function writeTrace(
  store: ResultStore,
  persist: PersistSpec,
  { isThere, ...run }: KeptRun & { readonly isThere: boolean },
): Promise<void> {
  const { key, trace, inputs = [] } = persist;
  if (trace === undefined) return;
  const { task, spec } = run;
  const last = await readTrace(store, task.key);
  const now = {
    ...{ key, args: trace.args, clients: [trace.client], atMs: Date.now(), inputs },
    ...{ fn: `${commonName(spec.module)}#${spec.name}`, version: spec.version },
  };
  let record: Trace;
  if (isThere && last?.key === key) {
    // Both for the same reason.
    record = { ...last, clients: [...new Set([...last.clients, trace.client])] };
  } else {
    const before = new Map(last?.inputs);
    const changed = inputs.filter(([input, hash]) => before.get(input) !== hash);
    record = {
      ...now,
      because: last === undefined ? 'never computed' : differenceOf(now, last),
      changed: last === undefined ? [] : changed.map(([input]) => input),
    };
  }
  const value = Buffer.from(JSON.stringify(record));
  // Stores take what has a key to be the same for ever.
  if (last !== undefined) await store.delete(traceKey(task.key));
  await store.write(traceKey(task.key), { type: 'trace', value });
}

function differenceOf(now: Omit<Trace, 'because' | 'changed'>, last: Trace): ComputedBecause {
  if (now.fn !== last.fn) return 'function';
  if (now.version !== last.version) return 'version';
  if (now.args !== last.args) return 'arguments';
  return now.key === last.key ? 'dropped' : 'inputs';
}

/**
 * Reads a result from the store in place of running its task, whose inputs are not there.
 * @throws YardmasterError `ERR_RESULT_STORE` when it is not there any more, or cannot be read
 */
export async function readKept(persist: PersistSpec, run: KeptRun): Promise<ExecutionResult> {
  const { key: task } = run.task;
  const found = await read(persist, run).catch((cause: unknown) => {
    const message = `the kept result of "${task}" could not be read from the store of results ${storeName(persist.store)}: ${messageOf(cause)}`;
    throw new YardmasterError('ERR_RESULT_STORE', message, { key: task }, { cause });
  });
  if (found !== undefined) return found;
  throw new YardmasterError(
    'ERR_RESULT_STORE',
    `the kept result of "${task}" was there when it was submitted and is gone now; submit it again, and it is computed`,
    { key: task },
  );
}

async function read(
  { store, key, hasDigest = false }: PersistSpec,
  { nowMs, context }: KeptRun,
): Promise<ExecutionResult | undefined> {
  const startMs = nowMs();
  const from = await opened(store, context);
  const found: unknown = await from.read(key);
  if (found === undefined) return undefined;
  const { type, value } = (found ?? {}) as Partial<StoredResult>;
  if (typeof type === 'string' && value instanceof Uint8Array) {
    // It may have been lost alone.
    if (hasDigest && !(await from.has(digestKey(key)))) await writeDigest(from, key, value);
    return { kind: 'success', type, value, startMs, stopMs: nowMs() };
  }
  const wanted = '{ type, value }, a text and a Uint8Array';
  throw new TypeError(`its read gave ${show(found)} instead of ${wanted}, or undefined`);
}

/** A store in messages: its folder, bucket or module. */
function storeName(store: StoreSpec): string {
  if ('folder' in store) return store.folder;
  return 's3' in store ? store.s3.bucket : store.use;
}

/** Says that a store failed when it was asked for a result. */
export function warnUnasked(store: StoreSpec, task: string, error: unknown): void {
  warn(store, `could not be asked for "${task}", which is computed: ${messageOf(error)}`);
}

function warn(store: StoreSpec, what: string): void {
  const message = printable(`the store of results ${storeName(store)} ${what}`);
  process.emitWarning(message, 'YardmasterResultStore');
}

/** Keeps the result of a run. One that cannot be kept is a result all the same. */
async function keepResult(
  running: Running,
  persist: PersistSpec,
  run: KeptRun,
): Promise<ExecutionResult> {
  const result = await running;
  if (result.kind !== 'success') return result;
  if (run.spec.each !== undefined && hasFailures(result.value)) return result;
  const { store, key, hasDigest = false } = persist;
  try {
    const value = withoutSharedMemory(result.value);
    checkRefusal(value);
    const to = await opened(store, run.context);
    const isThere = persist.trace !== undefined && (await to.has(key));
    if (hasDigest) await writeDigest(to, key, value);
    await to.write(key, { ...result, value });
    await writeTrace(to, persist, { ...run, isThere });
  } catch (error) {
    warn(store, `did not keep the result of "${run.task.key}": ${messageOf(error)}`);
  }
  return result;
}

async function writeDigest(store: ResultStore, key: string, result: Uint8Array): Promise<void> {
  const value = Buffer.from(digestOf(result));
  await store.write(digestKey(key), { type: 'digest', value });
}

/** Loaded when it is needed, because every thread loads this file. */
let stores: Promise<typeof Stores> | undefined;

async function opened(store: StoreSpec, { surroundings }: RunContext): Promise<ResultStore> {
  const own = surroundings?.resultStore;
  const isOwn = own !== undefined && 'use' in own && 'use' in store && own.use === store.use;
  stores ??= import('../stores/open-result-store.ts');
  return (await stores).openResultStore(store, isOwn ? undefined : surroundings?.modules);
}
