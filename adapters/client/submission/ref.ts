import { checkKey } from './keys.ts';

/** Stands for the result of another task of the same graph. */
export class Ref<T> {
  /** Never set; carries the type. */
  declare readonly type?: T;

  constructor(readonly key: string) {}
}

/**
 * The result of the task of this name: `task(add, ref('a'), 1)`.
 * Say `ref<number>('a')` to have the type checked; a plain `ref('a')` fits everywhere.
 */
export function ref<T = never>(key: string): Ref<T> {
  return new Ref<T>(checkKey(key));
}
