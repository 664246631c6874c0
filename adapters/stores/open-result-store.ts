import {
  checkVersion,
  type CreateResultStore,
  type ResultStore,
  type StoreSpec,
  YardmasterError,
} from '../../core/api/index.ts';
import { ResultFolder } from './result-folder.ts';

/** Of this thread, by their description. */
const open = new Map<string, Promise<ResultStore>>();

/**
 * The store that a description names. Opened once in each thread.
 * @throws YardmasterError `ERR_RESULT_STORE` when its module cannot be used
 */
export function openResultStore(spec: StoreSpec): Promise<ResultStore> {
  const id = JSON.stringify(spec);
  let store = open.get(id);
  if (store === undefined) {
    store = make(spec);
    open.set(id, store);
    // The next task tries again.
    store.catch(() => open.delete(id));
  }
  return store;
}

async function make(spec: StoreSpec): Promise<ResultStore> {
  if ('folder' in spec) return new ResultFolder(spec.folder, spec.maxBytes);
  if ('s3' in spec) {
    // Its package is large, and optional.
    const { ResultBucket } = await import('./result-bucket.ts');
    return ResultBucket.open(spec.s3);
  }
  const { module, options } = spec;
  try {
    const exported = (await import(/* @vite-ignore */ /* webpackIgnore: true */ module)) as Record<
      string,
      unknown
    >;
    const create = exported['createResultStore'];
    if (typeof create !== 'function') throw new Error('it exports no function createResultStore');
    const store = await (create as CreateResultStore)(options);
    checkVersion(store, `the store of ${module}`);
    return store;
  } catch (cause) {
    throw new YardmasterError(
      'ERR_RESULT_STORE',
      `the result store ${module} cannot be used: ${(cause as Error).message}`,
      { module },
      { cause },
    );
  }
}
