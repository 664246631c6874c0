import type { MakeExtension } from '../context.ts';
import { makeEventFlags } from './event-flags.ts';
import { makeLocks, makeSemaphores } from './leases.ts';
import { makeMemorySampler } from './memory-sampler.ts';
import { makeMultiLocks } from './multi-lock.ts';
import { makePublish } from './publish.ts';
import { makePubSub } from './pubsub.ts';
import { makeQueues } from './queues.ts';
import { makeShuffle } from './shuffle.ts';
import { makeVariables } from './variables.ts';

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
