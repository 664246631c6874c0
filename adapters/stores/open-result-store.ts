import { type ResultStore, type StoreSpec, YardmasterError } from '../../core/api/index.ts';
import type { ModuleLimit } from '../../core/shared/limits.ts';
import { SystemClock } from '../clocks/index.ts';
import { ResultFolder } from './result-folder.ts';

/** Of this thread, by their description and the modules that they may be in. */
const open = new Map<string, Promise<ResultStore>>();

/**
 * The store that a description names. Opened once in each thread.
 * @param modules - where its module may be. Default: everywhere
 * @throws YardmasterError `ERR_RESULT_STORE` when its module cannot be used, `ERR_MODULE_REFUSED`
 */
export function openResultStore(spec: StoreSpec, modules?: ModuleLimit): Promise<ResultStore> {
  const id = JSON.stringify([spec, modules?.folders]);
  let store = open.get(id);
  if (store === undefined) {
    store = make(spec, modules);
    open.set(id, store);
    // The next task tries again.
    store.catch(() => open.delete(id));
  }
  return store;
}

async function make(spec: StoreSpec, modules: ModuleLimit | undefined): Promise<ResultStore> {
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
    return await open({ clock: new SystemClock() });
  } catch (cause) {
    if (YardmasterError.is(cause, 'ERR_MODULE_REFUSED')) throw cause;
    const message = `the result store ${spec.use} cannot be used: ${(cause as Error).message}`;
    throw new YardmasterError('ERR_RESULT_STORE', message, { use: spec.use }, { cause });
  }
}
