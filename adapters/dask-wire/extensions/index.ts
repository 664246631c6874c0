import type { MakeExtension } from '../context.ts';

/** What Dask calls extensions of the scheduler: locks, queues, variables and the like. */
export const EXTENSIONS: readonly MakeExtension[] = [];
