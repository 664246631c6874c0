/** What belongs to the dashboard. Each says so by its name. */
import type { RpcTable } from '../context.ts';
import { PythonException } from './py-errors.ts';

const FEATURES: Readonly<Record<string, string>> = {
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
        `${feature} needs the dashboard of Dask's scheduler, which Yardmaster does not have; see docs/dask.md`,
      );
    },
  ]),
);
