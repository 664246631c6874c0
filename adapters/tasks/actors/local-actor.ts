import { randomUUID } from 'node:crypto';
import { RemoteError } from '../../../core/api/index.ts';
import { contextOf } from '../context.ts';
import { ActorObject } from './actor-object.ts';
import { callerIn } from './callers.ts';
import { type ActorHandle, makeHandle } from './handle.ts';

/** An actor in this very thread, outside of any cluster: its handle works like every other. */
export function localActor(object: object): ActorHandle<object> {
  const key = `local-${randomUUID()}`;
  const { signal } = new AbortController();
  const context = contextOf(key, { signal });
  const nowMs = (): number => performance.now();
  const actor = new ActorObject(object, { context, nowMs, callerFor: callerIn(context) });
  const { type, methods } = actor;
  return makeHandle({
    description: { key, worker: 'here', type, methods },
    caller: {
      send: async (_description, request) => {
        const result = await actor.call(request);
        if (result.kind === 'success') return result.value;
        throw result.kind === 'failure' ? new RemoteError(result.error) : new Error(result.kind);
      },
    },
  });
}
