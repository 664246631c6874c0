import { YardmasterError } from '../../core/api/index.ts';
import { findRefusal, pathText } from '../codecs/msgpack.ts';

/**
 * A copy of what a caller hands over, so that later changes to it do not matter: it is sent at the end of
 * the turn. O(values).
 *
 * @param what - how the message calls the value: `annotations`
 * @throws YardmasterError `ERR_NOT_SERIALISABLE` with the path of what cannot be sent
 */
export function copyOfPlain<T>(what: string, value: T): T {
  checkPlain(what, value);
  return copyOf(value) as T;
}

/** @throws YardmasterError `ERR_NOT_SERIALISABLE` with the path of what cannot be sent */
function checkPlain(what: string, value: unknown): void {
  const refusal = findRefusal(value);
  if (refusal === undefined) return;
  const { path, reason } = refusal;
  const where = pathText([what, ...path]);
  throw new YardmasterError('ERR_NOT_SERIALISABLE', `${where} cannot be sent: ${reason}`, {
    path: where,
    reason,
  });
}

function copyOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Uint8Array) return value.slice();
  if (Array.isArray(value)) return value.map(copyOf);
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, copyOf(item)]));
}
