import type { LogHeader } from '../../../core/log/format.ts';

/** Of the logs that tests write. */
export const HEADER: LogHeader = {
  holds: 'all',
  version: '1',
  schedulerId: 's',
  createdAtMs: 0,
  config: {},
  folder: '/',
  segment: 1,
};
