/** Results that outlive the cluster: what a run does with its store. */
import type * as Stores from '../stores/open-result-store.ts';
import {
  type ExecutionResult,
  messageOf,
  type PersistSpec,
  type ResultStore,
  type StoredResult,
  type StoreSpec,
  YardmasterError,
} from '../../core/api/index.ts';
import { withoutSharedMemory } from '../../core/util/bytes.ts';
import { checkRefusal, type RunContext } from './context.ts';
import { show } from '../../core/shared/words.ts';
import { printable } from '../../core/util/values.ts';

interface KeptRun {
  readonly context: RunContext;
  readonly nowMs: () => number;
}

/**
 * Reads a result from the store in place of running its task, whose inputs are not there.
 * @throws YardmasterError `ERR_RESULT_STORE` when it is not there any more, or cannot be read
 */
export async function readKept(
  persist: PersistSpec,
  task: string,
  run: KeptRun,
): Promise<ExecutionResult> {
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

/**
 * Reads the result of a task that was assigned before from the store: a worker that has died, or is out of reach, may
 * have computed it. Undefined: it has nothing, or cannot be asked.
 */
export async function readRepeated(
  persist: PersistSpec,
  task: string,
  run: KeptRun,
): Promise<ExecutionResult | undefined> {
  try {
    return await read(persist, run);
  } catch (error) {
    warnUnasked(persist.store, task, error);
    return undefined;
  }
}

async function read(
  { store, key }: PersistSpec,
  { nowMs, context }: KeptRun,
): Promise<ExecutionResult | undefined> {
  const startMs = nowMs();
  const found: unknown = await (await opened(store, context)).read(key);
  if (found === undefined) return undefined;
  const { type, value } = (found ?? {}) as Partial<StoredResult>;
  if (typeof type === 'string' && value instanceof Uint8Array) {
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
export async function keepResult(
  running: ExecutionResult | Promise<ExecutionResult>,
  { store, key }: PersistSpec,
  task: string,
  { context }: KeptRun,
): Promise<ExecutionResult> {
  const result = await running;
  if (result.kind !== 'success') return result;
  try {
    const value = withoutSharedMemory(result.value);
    checkRefusal(value);
    await (await opened(store, context)).write(key, { ...result, value });
  } catch (error) {
    warn(store, `did not keep the result of "${task}": ${messageOf(error)}`);
  }
  return result;
}

/** Loaded when it is needed, because every thread loads this file. */
let stores: Promise<typeof Stores> | undefined;

async function opened(store: StoreSpec, { surroundings }: RunContext): Promise<ResultStore> {
  const own = surroundings?.resultStore;
  const isOwn = own !== undefined && 'use' in own && 'use' in store && own.use === store.use;
  stores ??= import('../stores/open-result-store.ts');
  return (await stores).openResultStore(store, isOwn ? undefined : surroundings?.modules);
}
