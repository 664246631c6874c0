/** What submissions are checked for, and what they are refused with. */
import { inspect } from 'node:util';
import { YardmasterError } from '../../../core/api/index.ts';
import { isTaskFunction } from '../../tasks/index.ts';
import type { PackedTask } from './graph.ts';

/** Whatever a signal was aborted with, as text that can be sent. Never throws. */
export function textOf(reason: unknown): string {
  const text = reason instanceof Error ? `${reason.name}: ${reason.message}` : inspect(reason);
  return text.replace(/\p{Surrogate}/gu, '\uFFFD');
}

export function checkFunction(fn: unknown): void {
  if (isTaskFunction(fn)) return;
  const what = typeof fn === 'function' ? `the function ${fn.name || '(anonymous)'}` : String(fn);
  throw new YardmasterError(
    'ERR_FUNCTION_MISSING',
    `${what} is not known to workers; define it in a separate module with defineTasks(import.meta.url, { … })`,
  );
}

export function refuseFuture(key: string, why: string): never {
  throw new YardmasterError(
    'ERR_GRAPH_INVALID',
    `the future of "${key}" ${why} and cannot be an argument`,
    { key },
  );
}

export function bytesOf(packed: readonly PackedTask[]): number {
  return packed.reduce((sum, { nbytes }) => sum + nbytes, 0);
}
