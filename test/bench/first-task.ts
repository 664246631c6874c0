/** A module of tasks as users write one: what it imports is the package, as it is published. */
import type * as Yardmaster from '../../adapters/app/index.ts';

const { defineTasks } = (await import(import.meta.resolve('yardmaster'))) as typeof Yardmaster;

export const { nothing } = defineTasks(import.meta.url, { nothing: (): number => 0 });
