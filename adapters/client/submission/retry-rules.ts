import { YardmasterError, type RetrySpec } from '../../../core/api/index.ts';
import { isTaskFunction, type TaskFunction, travellingFunction } from '../../tasks/index.ts';
import { checkNames, refuseOption } from './option-checks.ts';

/** When a task that has failed is tried again, on the thread where it failed. */
export interface RetryRules {
  /** How often, at most. */
  readonly times: number;
  /** Milliseconds before the first retry. Default 1000. */
  readonly backoffMs?: number;
  /** Each further wait is this many times as long. At least 1. Default 2. */
  readonly factor?: number;
  /** From 0 to 1: the share of a wait by which it may be shorter, so that many do not come at once. Default 0. */
  readonly jitter?: number;
  /** Says of an error whether a retry is of use. A function of `defineTasks`, called in the worker. Default: always. */
  readonly retryIf?: TaskFunction<[error: Error], boolean | Promise<boolean>>;
}

const BACKOFF_MS = 1000;
const FACTOR = 2;

/** @throws YardmasterError `ERR_GRAPH_INVALID` naming the rule that cannot be */
export function checkRetries(retries: number | RetryRules): void {
  if (typeof retries === 'number') {
    if (!isCount(retries)) refuseOption('retries', retries, 'a whole number, at least 0');
    return;
  }
  if (typeof retries !== 'object' || (retries as object | null) === null) {
    refuseOption('retries', retries, 'a whole number, or rules such as { times: 3 }');
  }
  checkNames(retries, ['times', 'backoffMs', 'factor', 'jitter', 'retryIf']);
  const { times, backoffMs = BACKOFF_MS, factor = FACTOR, jitter = 0, retryIf } = retries;
  if (!isCount(times)) refuseOption('retries.times', times, 'a whole number, at least 0');
  if (!(Number.isFinite(backoffMs) && backoffMs >= 0)) {
    refuseOption('retries.backoffMs', backoffMs, 'a finite number, at least 0');
  }
  if (!(Number.isFinite(factor) && factor >= 1)) {
    refuseOption('retries.factor', factor, 'a finite number, at least 1');
  }
  if (!(jitter >= 0 && jitter <= 1)) refuseOption('retries.jitter', jitter, 'from 0 to 1');
  if (retryIf === undefined || isTaskFunction(retryIf)) return;
  throw new YardmasterError(
    'ERR_FUNCTION_MISSING',
    'retries.retryIf is called in the worker and is not known there; define it with defineTasks(import.meta.url, { … })',
    { option: 'retries.retryIf' },
  );
}

/** The rules as they travel; undefined when the scheduler alone counts the retries. */
export function retrySpec(
  retries: number | RetryRules | undefined,
  codeRoot?: string,
): RetrySpec | undefined {
  if (typeof retries !== 'object' || retries.times === 0) return undefined;
  const { times, backoffMs = BACKOFF_MS, factor = FACTOR, jitter = 0, retryIf } = retries;
  if (retryIf === undefined) return { times, backoffMs, factor, jitter };
  return { times, backoffMs, factor, jitter, retryIf: travellingFunction(retryIf, codeRoot) };
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
