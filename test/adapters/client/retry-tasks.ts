/** Tasks that fail for a while. Workers in this process import this module. */
import { currentTask, defineTasks } from '../../../adapters/tasks/index.ts';

/** Times of the calls, by label, in the clock that the test gives. */
export const calledMs = new Map<string, number[]>();
/** Set by the test. */
export const watch = { nowMs: () => 0 };
/** Labels of the runs that were aborted. */
export const aborted: string[] = [];
const attempts = new Map<string, number[]>();

export const { attemptsOf, failsFor, hasCode, isBroken, isTransient, waitsForAbort } = defineTasks(
  import.meta.url,
  {
    /** Fails the first `times` times, with this code. */
    failsFor(label: string, times: number, code: string): string {
      const calls = calledMs.get(label) ?? [];
      calls.push(watch.nowMs());
      calledMs.set(label, calls);
      if (calls.length <= times) {
        throw Object.assign(new Error(`failure ${calls.length}`), { code, times });
      }
      return `after ${calls.length}`;
    },
    /** The numbers of its attempts, of which the last one succeeds. */
    attemptsOf(label: string, count: number): number[] {
      const seen = [...(attempts.get(label) ?? []), currentTask().attempt];
      attempts.set(label, seen);
      if (seen.length < count) throw new Error(`attempt ${seen.length}`);
      return seen;
    },
    hasCode: (error: Error): boolean => (error as { code?: unknown }).code as boolean,
    isBroken(): boolean {
      throw new TypeError('a mistake in the rule');
    },
    isTransient: (error: Error): boolean => (error as { code?: string }).code === 'E_BUSY',
    async waitsForAbort(label: string): Promise<never> {
      const { signal } = currentTask();
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      aborted.push(label);
      throw new Error('aborted');
    },
  },
);
