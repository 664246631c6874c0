import { YardmasterError } from '../../../core/api/index.ts';
import type { RunContext } from '../context.ts';
import type { ActorCaller } from './handle.ts';

/** Makes what the handles reach their actors by that a task, or an actor, has received. */
export function callerIn(context: RunContext): () => ActorCaller {
  return () => {
    const { surroundings, key } = context;
    if (surroundings !== undefined) return surroundings.actorCaller(context);
    const message = `"${key}" has a handle of an actor, but what runs it knows of no cluster`;
    return { send: () => Promise.reject(new YardmasterError('ERR_TASK', message, { key })) };
  };
}
