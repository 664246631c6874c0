import { definePolicy } from '../../core/api/index.ts';

/**
 * No queuing at all: no task is root-ish, so the worker selection policy places each one as soon as it is
 * ready. For policies that plan ahead, such as `locality-first`.
 */
export const direct = definePolicy('queuing', {
  name: 'direct',
  apiVersion: 1,
  optionsSchema: { type: 'object', additionalProperties: false },
  create: () => ({
    holdsBack: false,
    slotLimit: () => Infinity,
    isRootish: () => false,
    // Never called for a new task. Tasks queued by another policy, when this one replaces it, go to
    // the least busy worker.
    selectRootish: (_task, cluster) => cluster.openSlots.peek(),
  }),
});
