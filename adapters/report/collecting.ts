import { definePlugin } from '../../core/api/index.ts';
import type { RunCollector } from './run-collector.ts';

/** Milliseconds between two looks at the memory and the processors of workers. */
const SAMPLE_MS = 200;

/** A plugin that shows a collector all that happens while it is loaded. */
export function collecting(collector: RunCollector): object {
  return definePlugin({
    name: 'schedule',
    apiVersion: 1,
    setup(context) {
      collector.sample(context.cluster);
      context.every(SAMPLE_MS, () => collector.sample(context.cluster));
      return collector.hooks;
    },
  });
}
