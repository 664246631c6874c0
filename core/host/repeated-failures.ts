import { YardmasterError } from '../api/errors.ts';
import { countData, countText, type FailureCount, isReported } from '../util/failure-count.ts';

/**
 * Decides whether a failure that may repeat in every call is reported: the 1st, 2nd, 4th, 8th and so on are.
 * @param kind - what is counted
 * @param of - for the end of the message: `(failure 4 of this policy)`
 * @returns the error to report, with its number from the second one on; undefined: it is only counted
 */
export function nextToReport(
  failures: FailureCount,
  error: YardmasterError,
  { kind, of }: { readonly kind: string; readonly of: string },
): YardmasterError | undefined {
  const count = failures.add(kind);
  if (!isReported(count)) return undefined;
  if (count === 1) return error;
  const { code, message, data, cause } = error;
  const counted = { ...data, ...countData(count) };
  return new YardmasterError(code, message + countText(count, of), counted, { cause });
}
