import { definePolicy } from '../../core/api/index.ts';

/**
 * No queuing at all: no task is root-ish, so the worker selection policy places each one as soon as it is
 * ready. For policies that plan ahead, such as `locality-first`.
 */
export const direct = definePolicy('queuing', {
  name: 'direct',
  optionsSchema: { type: 'object', additionalProperties: false },
  create: () => ({
    holdsBack: false,
    slotLimit: () => Infinity,
    isRootish: () => false,
    // Nobody asks; what is queued while the policy is replaced goes to the least busy worker.
    selectRootish: (_task, cluster) => cluster.openSlots.peek(),
  }),
});
