import { YardmasterError } from '../../../core/api/index.ts';

/** @throws YardmasterError `ERR_RESULT_STORE` for what could lead out of the store */
export function checkKey(key: string): void {
  if (/^[0-9a-f]{64}$/.test(key)) return;
  throw new YardmasterError('ERR_RESULT_STORE', `"${key}" is not the key of a result`, { key });
}
