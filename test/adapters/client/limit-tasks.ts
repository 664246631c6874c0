/** Tasks that say how many of them run. Workers in this process import this module. */
import { concurrent, defineTasks } from '../../../adapters/tasks/index.ts';

/** By host: how many run, and the most that ran at one time. */
export const running = new Map<string, { now: number; most: number }>();
/** Set by the test. */
export const watch = {
  sleep: (ms: number): Promise<void> => Promise.reject(new Error(`no clock for ${ms} ms`)),
};

export const { visit } = defineTasks(import.meta.url, {
  visit: concurrent(20, async (url: string): Promise<string> => {
    const { host } = new URL(url);
    const count = running.get(host) ?? { now: 0, most: 0 };
    running.set(host, count);
    count.most = Math.max(count.most, ++count.now);
    await watch.sleep(100);
    count.now--;
    return url;
  }),
});
