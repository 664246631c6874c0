import { toErrorPayload, YardmasterError } from '../api/errors.ts';
import type { SlotName, PolicySlots } from '../api/policies.ts';
import { invariantError } from './errors.ts';
import type { KernelScope } from './scope.ts';

/**
 * Asks a policy, and the built-in one of its slot when it throws or its answer is refused. In validate
 * mode a policy that misbehaves is an error.
 *
 * @param ask - puts the question to a policy
 * @param refuse - what is wrong with an answer; undefined when nothing is
 */
export function askPolicy<Slot extends SlotName, Answer>(
  scope: KernelScope,
  slot: Slot,
  ask: (policy: PolicySlots[Slot]) => Answer,
  refuse: (answer: Answer) => string | undefined,
): Answer {
  const { name, policy } = scope.ports[slot];
  let error: YardmasterError;
  try {
    const answer = ask(policy as PolicySlots[Slot]);
    const refusal = refuse(answer);
    if (refusal === undefined) return answer;
    error = policyError(slot, name, refusal);
  } catch (thrown) {
    const { message } = toErrorPayload(thrown);
    error = policyError(slot, name, `threw: ${message}`, thrown);
  }
  scope.ports.onPolicyFailure({ slot, policy: name, error });
  if (scope.options.validate) throw error;
  const answer = ask(scope.ports.fallbacks[slot]);
  const refusal = refuse(answer);
  if (refusal !== undefined) {
    throw invariantError(`the built-in policy of ${slot} ${refusal}`, { slot });
  }
  return answer;
}

function policyError(
  slot: SlotName,
  policy: string,
  what: string,
  cause?: unknown,
): YardmasterError {
  return new YardmasterError(
    'ERR_POLICY',
    `policy "${policy}" of slot ${slot} ${what}; the built-in policy decided instead`,
    { slot, policy },
    cause === undefined ? {} : { cause },
  );
}
