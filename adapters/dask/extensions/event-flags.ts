import type { DaskExtension, MakeExtension } from '../context.ts';
import { Coordination, isTimeout, nameIn, timeoutIn } from './coordination.ts';

/** `distributed.Event`: the events of the scheduler's coordination. */
export const makeEventFlags: MakeExtension = (context): DaskExtension => {
  const coordination = new Coordination(context);
  return {
    rpc: {
      event_set: async (request) => {
        await coordination.call('setEvent', { name: nameIn(request) });
      },
      event_clear: async (request) => {
        await coordination.call('clearEvent', { name: nameIn(request) });
      },
      event_is_set: (request) => coordination.call('isEventSet', { name: nameIn(request) }),
      event_wait: async (request) => {
        const wait = { name: nameIn(request), timeoutMs: timeoutIn(request) };
        try {
          await coordination.call('waitForEvent', wait);
          return true;
        } catch (error) {
          if (isTimeout(error)) return false;
          throw error;
        }
      },
    },
  };
};
