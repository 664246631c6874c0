import { YardmasterError } from '../../api/errors.ts';
import type { ActorCall, Executor } from '../../api/executor.ts';
import { checkedResult } from '../../plugin-host/contracts.ts';
import type { WireMessage } from '../../api/transport.ts';

/**
 * Has an actor of this worker called. What the method throws is part of the answer.
 * @throws YardmasterError `ERR_PROTOCOL` when it is not a call
 */
export async function answerActorCall(
  executor: Executor,
  { key, member, args, actors }: WireMessage,
): Promise<WireMessage> {
  const isCall =
    typeof key === 'string' &&
    typeof member === 'string' &&
    (args === undefined || args instanceof Uint8Array) &&
    (actors === undefined || Array.isArray(actors));
  if (!isCall) throw new YardmasterError('ERR_PROTOCOL', 'the peer sent a broken actor-call');
  if (executor.callActor === undefined) {
    throw new YardmasterError('ERR_PROTOCOL', 'this worker has no actors');
  }
  const call: ActorCall = {
    key,
    member,
    ...(args === undefined ? {} : { args }),
    ...(actors === undefined ? {} : { actors: actors as NonNullable<ActorCall['actors']> }),
  };
  const what = `the call of ${member} of "${key}"`;
  const result = checkedResult(executor, await executor.callActor(call), what);
  if (result.kind === 'success') return { value: result.value };
  if (result.kind === 'failure') return { error: result.error };
  throw new YardmasterError('ERR_TASK', `${member} of "${key}" asked to be placed anew`);
}
