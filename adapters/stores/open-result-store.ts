import {
  type Clock,
  type ResultStore,
  type StoredResult,
  type StoreSpec,
  YardmasterError,
} from '../../core/api/index.ts';
import type { ModuleLimit } from '../../core/shared/limits.ts';
import { withTimeout } from '../../core/shared/timers.ts';
import { SystemClock } from '../clocks/index.ts';
import { ResultFolder } from './result-folder.ts';

/** Milliseconds for a store to answer, and to read or write a result, which may be large. */
const ANSWER_MS = 10_000;
const TRANSFER_MS = 300_000;
/** Milliseconds for which a store is not asked that has not answered in time. */
const SILENCE_MS = 30_000;

/** A store of which every call ends: what waits for it, and what waits behind that, goes on without it. */
export class AnsweringStore implements ResultStore {
  private silentUntilMs = -Infinity;

  constructor(
    private readonly store: ResultStore,
    private readonly clock: Clock,
  ) {}

  has(key: string): Promise<boolean> {
    return this.within(ANSWER_MS, () => this.store.has(key));
  }

  read(key: string): Promise<StoredResult | undefined> {
    return this.within(TRANSFER_MS, () => this.store.read(key));
  }

  write(key: string, result: StoredResult): Promise<void> {
    return this.within(TRANSFER_MS, () => this.store.write(key, result));
  }

  delete(key: string): Promise<void> {
    return this.within(ANSWER_MS, () => this.store.delete(key));
  }

  /** @throws YardmasterError `ERR_RESULT_STORE` when it does not answer within that, or has not lately */
  private async within<T>(limitMs: number, call: () => Promise<T>): Promise<T> {
    const { clock } = this;
    const leftMs = this.silentUntilMs - clock.nowMs();
    if (leftMs > 0) throw unanswered(`it has not answered, and is asked again in ${leftMs} ms`);
    return withTimeout(clock, call(), limitMs, () => {
      this.silentUntilMs = clock.nowMs() + SILENCE_MS;
      return unanswered(`it has not answered for ${limitMs} ms`);
    });
  }
}

function unanswered(message: string): YardmasterError {
  return new YardmasterError('ERR_RESULT_STORE', message);
}

/** Of this thread, by their description and, for one with a module, where that may be. */
const open = new Map<string, Promise<ResultStore>>();

/**
 * The store that a description names. Opened once in each thread.
 * @param modules - where its module may be. Default: everywhere
 * @throws YardmasterError `ERR_RESULT_STORE` when its module cannot be used, `ERR_MODULE_REFUSED`
 */
export function openResultStore(spec: StoreSpec, modules?: ModuleLimit): Promise<ResultStore> {
  const id = JSON.stringify('use' in spec ? [spec, modules?.folders] : spec);
  let store = open.get(id);
  if (store === undefined) {
    const clock = new SystemClock();
    store = make(spec, modules, clock).then((made) => new AnsweringStore(made, clock));
    open.set(id, store);
    // The next task tries again.
    store.catch(() => open.delete(id));
  }
  return store;
}

async function make(
  spec: StoreSpec,
  modules: ModuleLimit | undefined,
  clock: Clock,
): Promise<ResultStore> {
  if ('folder' in spec) return new ResultFolder(spec.folder, spec.maxBytes);
  if ('s3' in spec) {
    // Its package is large, and optional.
    const { ResultBucket } = await import('./result-bucket.ts');
    return ResultBucket.open(spec.s3);
  }
  // Every thread loads this file, and few use a store of this kind.
  const [{ loadStore }, { resolverIn }] = await Promise.all([
    import('../../core/plugin-host/load-extensions.ts'),
    import('../../core/plugin-host/module-files.ts'),
  ]);
  const resolver = resolverIn(process.cwd());
  try {
    const open = await loadStore(spec, resolver, undefined, modules);
    return await open({ clock });
  } catch (cause) {
    if (YardmasterError.is(cause, 'ERR_MODULE_REFUSED')) throw cause;
    const message = `the result store ${spec.use} cannot be used: ${(cause as Error).message}`;
    throw new YardmasterError('ERR_RESULT_STORE', message, { use: spec.use }, { cause });
  }
}
