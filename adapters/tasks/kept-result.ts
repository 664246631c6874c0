/** Results that outlive the cluster: what a run does with its store. */
import type * as Stores from '../stores/open-result-store.ts';
import {
  type ExecutionResult,
  type PersistSpec,
  type ResultStore,
  type StoreSpec,
  YardmasterError,
} from '../../core/api/index.ts';
import { withoutSharedMemory } from '../../core/util/bytes.ts';
import { checkRefusal, type RunContext } from './context.ts';
import { printable } from '../../core/util/values.ts';

interface KeptRun {
  readonly context: RunContext;
  readonly nowMs: () => number;
}

/**
 * Reads a result from the store in place of running its task.
 * @throws YardmasterError `ERR_RESULT_STORE` when it is not there any more
 */
export async function readKept(
  { store, key }: PersistSpec,
  task: string,
  { nowMs, context }: KeptRun,
): Promise<ExecutionResult> {
  const startMs = nowMs();
  const found = await (await opened(store, context)).read(key);
  if (found !== undefined) return { kind: 'success', ...found, startMs, stopMs: nowMs() };
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
  { store, key }: PersistSpec,
  task: string,
  { nowMs, context }: KeptRun,
): Promise<ExecutionResult | undefined> {
  const startMs = nowMs();
  try {
    const found = await (await opened(store, context)).read(key);
    return found && { kind: 'success', ...found, startMs, stopMs: nowMs() };
  } catch (error) {
    process.emitWarning(
      printable(
        `the store of results could not be asked for "${task}", which is computed: ${(error as Error).message}`,
      ),
      'YardmasterResultStore',
    );
    return undefined;
  }
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
    process.emitWarning(
      printable(`the result of "${task}" was not kept: ${(error as Error).message}`),
      'YardmasterResultStore',
    );
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
