import { isPlainObject } from '../../../core/util/plain-object.ts';
import { isWellFormed } from '../../codecs/msgpack/index.ts';
import { checkNames, refuseOption } from './option-checks.ts';

/** Of the tasks with a limit of this name, at most `max` run at the same time, in the whole cluster. */
interface TaskLimit {
  readonly name: string;
  /** At least 1. The submission that names the limit last says how many. */
  readonly max: number;
}

/** A limit, or what finds it by the arguments of a call as they were given; undefined: this call has none. */
type LimitOption = TaskLimit | ((...args: never[]) => TaskLimit | undefined);

/** @throws YardmasterError `ERR_GRAPH_INVALID` */
export function checkLimit(limit: unknown): void {
  if (typeof limit === 'function') return;
  if (!isPlainObject(limit)) {
    refuseOption('limit', limit, "an object such as { name: 'database', max: 4 }, or a function");
  }
  checkNames(limit, ['name', 'max']);
  const { name, max } = limit;
  if (typeof name !== 'string' || name === '' || !isWellFormed(name)) {
    refuseOption('limit.name', name, 'text that is not empty, without half of a surrogate pair');
  }
  if (!(Number.isSafeInteger(max) && (max as number) >= 1)) {
    refuseOption('limit.max', max, 'a whole number, at least 1');
  }
}

/**
 * The options with the limit of one call.
 * @throws YardmasterError `ERR_GRAPH_INVALID` when the function finds something that is no limit
 */
export function withLimitOf<Options extends { readonly limit?: LimitOption }>(
  options: Options,
  args: readonly unknown[],
): Options {
  const { limit: find } = options;
  // Most tasks have none, and a copy for each would cost more than the rest of this.
  if (typeof find !== 'function') return options;
  const limit = find(...(args as never[]));
  if (limit !== undefined) checkLimit(limit);
  return { ...options, limit };
}
