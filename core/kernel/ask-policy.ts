import { messageOf, YardmasterError } from '../api/errors.ts';
import type { KernelSlotName, KernelSlots, SlotName } from '../api/policies.ts';
import { isPromise, typeName } from '../util/values.ts';
import { invariantError } from './ports.ts';
import type { KernelScope } from './scope.ts';

/**
 * A question to the policy of a slot. One object per question, made once: asking allocates nothing.
 */
export interface Question<Slot extends KernelSlotName, Subject, Answer, Detail = undefined> {
  readonly slot: Slot;
  ask(policy: KernelSlots[Slot], scope: KernelScope, subject: Subject, detail: Detail): Answer;
  /** The fault of an answer; undefined when it has none. */
  refuse(answer: Answer, scope: KernelScope, subject: Subject): string | undefined;
}

/**
 * Asks a policy, and the built-in one of its slot when it throws or its answer is refused. In validate
 * mode a policy that misbehaves is an error.
 */
export function askPolicy<Slot extends KernelSlotName, Subject, Answer, Detail = undefined>(
  scope: KernelScope,
  question: Question<Slot, Subject, Answer, Detail>,
  subject: Subject,
  detail?: Detail,
): Answer {
  const { slot } = question;
  const { name, policy } = scope.ports[slot];
  let what: string;
  let cause: unknown;
  try {
    const answer = question.ask(policy as KernelSlots[Slot], scope, subject, detail as Detail);
    const refusal = question.refuse(answer, scope, subject);
    if (refusal === undefined) {
      scope.ports.onPolicyAnswer?.(question);
      return answer;
    }
    what = refusal;
  } catch (thrown) {
    what = `threw: ${messageOf(thrown)}`;
    cause = thrown;
  }
  const error = policyError(slot, name, what, cause);
  scope.ports.onPolicyFailure({ question, slot, policy: name, what, error });
  if (scope.options.validate) throw error;
  const answer = question.ask(scope.ports.fallbacks[slot], scope, subject, detail as Detail);
  const refusal = question.refuse(answer, scope, subject);
  if (refusal !== undefined) {
    throw invariantError(`the built-in policy of ${slot} ${refusal}`, { slot });
  }
  return answer;
}

/** An answer of a policy that is not of the expected kind, for a message. */
export function nameAnswer(answer: unknown): string {
  if (isPromise(answer)) return 'a promise (policies answer at once)';
  if (answer === null) return 'null';
  if (typeof answer === 'string') return JSON.stringify(answer.slice(0, 60));
  if (typeof answer === 'object') return `an object of the class ${typeName(answer)}`;
  return typeof answer === 'number' || typeof answer === 'boolean'
    ? `the ${typeof answer} ${answer}`
    : `a value of the type ${typeof answer}`;
}

/** @param what - what the policy did, in words that follow its name: `threw: …`, `chose …` */
export function policyError(
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
