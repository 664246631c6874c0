import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { BucketSpec, StoreSpec } from '../../../core/api/index.ts';
import { checkNames, refuseOption } from './option-checks.ts';

/**
 * Where results are kept: the path of a folder; the same with a limit, of which about as much is kept; a bucket
 * of S3; or a module that exports `createResultStore`, by its URL, path or package.
 */
export type ResultStoreOption =
  | string
  | { readonly folder: string; readonly maxBytes?: number }
  | { readonly s3: BucketSpec }
  | { readonly module: string; readonly options?: unknown };

/** @throws YardmasterError `ERR_GRAPH_INVALID` when it names no store */
export function storeSpec(option: ResultStoreOption): StoreSpec {
  if (typeof option === 'string') return { folder: resolve(option) };
  if (typeof option !== 'object' || (option as object | null) === null) refuseStore(option);
  if ('module' in option) {
    checkNames(option, ['module', 'options']);
    const { module } = option;
    if (typeof module !== 'string') refuseStore(option);
    const isPath = module.startsWith('.') || module.startsWith('/');
    return { ...option, module: isPath ? pathToFileURL(resolve(module)).href : module };
  }
  if ('s3' in option) {
    checkNames(option, ['s3']);
    return { s3: checkBucket(option.s3) };
  }
  checkNames(option, ['folder', 'maxBytes']);
  const { folder, maxBytes } = option;
  if (typeof folder !== 'string') refuseStore(option);
  if (maxBytes !== undefined && !(Number.isSafeInteger(maxBytes) && maxBytes > 0)) {
    refuseOption('resultStore.maxBytes', maxBytes, 'a whole number above 0');
  }
  return { ...option, folder: resolve(folder) };
}

const BUCKET_TEXTS = ['bucket', 'prefix', 'region', 'endpoint'] as const;

function checkBucket(bucket: unknown): BucketSpec {
  checkNames(bucket, [...BUCKET_TEXTS, 'forcePathStyle']);
  const given = bucket as BucketSpec;
  for (const name of BUCKET_TEXTS) {
    const value: unknown = given[name];
    if (typeof value === 'string' || (value === undefined && name !== 'bucket')) continue;
    refuseOption(`resultStore.s3.${name}`, value, 'a text');
  }
  return given;
}

function refuseStore(option: unknown): never {
  refuseOption(
    'resultStore',
    option,
    'the path of a folder, { folder }, { s3: { bucket } }, or { module }',
  );
}
