import type { MakeExtension } from '../context.ts';
import {
  makeEventFlags,
  makeLocks,
  makeMultiLocks,
  makeQueues,
  makeSemaphores,
  makeVariables,
} from './coordination.ts';
import { makeMemorySampler, makePublish, makePubSub } from './publish.ts';
import { makeShuffle } from './shuffle.ts';

/** What Dask calls extensions of the scheduler: locks, queues, variables and the like. */
export const EXTENSIONS: readonly MakeExtension[] = [
  makeEventFlags,
  makeLocks,
  makeSemaphores,
  makeMultiLocks,
  makeQueues,
  makeVariables,
  makePublish,
  makePubSub,
  makeMemorySampler,
  makeShuffle,
];
