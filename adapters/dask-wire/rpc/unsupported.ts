/** What would need Python in the process of the scheduler. Each says so by its name. */
import type { RpcTable } from '../context.ts';
import { PythonException } from '../py-errors.ts';

const FEATURES: Readonly<Record<string, string>> = {
  run_function: 'run_on_scheduler',
  unregister_scheduler_plugin: 'plugins of the scheduler in Python (unregister_scheduler_plugin)',
  feed: 'the feed of progress bars and dashboards (feed)',
  performance_report: 'performance_report',
  get_profile_metadata: 'the dashboard',
  eventstream: 'the dashboard',
};

/** Handlers that refuse. */
export const UNSUPPORTED: RpcTable = Object.fromEntries(
  Object.entries(FEATURES).map(([op, feature]) => [
    op,
    () => {
      throw new PythonException(
        'NotImplementedError',
        `${feature} runs Python inside the scheduler, and Yardmaster's scheduler has none; see docs/dask.md`,
      );
    },
  ]),
);
