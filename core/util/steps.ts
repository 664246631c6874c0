/** Long work with pauses: a `yield` after a few milliseconds, and the result at the end. */
export type Steps<Result> = Generator<undefined, Result, undefined>;

/** Whether an answer is work that is still to be done. */
export function isSteps<Result extends object>(
  answer: Result | Steps<Result>,
): answer is Steps<Result> {
  // An answer of a policy may be anything.
  return typeof (answer as Partial<Steps<Result>> | null | undefined)?.next === 'function';
}

/** Does the work without pauses. */
export function withoutPauses<Result extends object>(answer: Result | Steps<Result>): Result {
  if (!isSteps(answer)) return answer;
  for (;;) {
    const { done, value } = answer.next();
    if (done === true) return value;
  }
}
