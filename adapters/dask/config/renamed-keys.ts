const DISTRIBUTED_ROOT_KEYS = ['rmm'];
const SCHEDULER_KEYS = [
  'allowed-failures',
  'bandwidth',
  'default-data-size',
  'work-stealing',
  'worker-ttl',
];
const ADMIN_KEYS = ['log-length', 'log-format', 'pdb-on-err'];
const COMM_KEYS = ['compression', 'default-scheme', 'socket-backlog'];
const LOW_LEVEL_LOG = 'distributed.admin.low-level-log-length';

/**
 * Keys that Dask has renamed and still reads, by their old names. Names have dashes.
 * Source: `deprecations` of `distributed/config.py`, as far as they concern a scheduler.
 */
export const RENAMED_KEYS: ReadonlyMap<string, string> = new Map([
  ...SCHEDULER_KEYS.map((key) => [key, `distributed.scheduler.${key}`] as const),
  ...ADMIN_KEYS.map((key) => [key, `distributed.admin.${key}`] as const),
  ...COMM_KEYS.map((key) => [key, `distributed.comm.${key}`] as const),
  ...DISTRIBUTED_ROOT_KEYS.map((key) => [key, `distributed.${key}`] as const),
  ['connect-timeout', 'distributed.comm.timeouts.connect'],
  ['tcp-timeout', 'distributed.comm.timeouts.tcp'],
  ['tick-time', 'distributed.admin.tick.interval'],
  ['tick-maximum-delay', 'distributed.admin.tick.limit'],
  ['diagnostics-link', 'distributed.dashboard.link'],
  ['bokeh-export-tool', 'distributed.dashboard.export-tool'],
  ['transition-log-length', LOW_LEVEL_LOG],
  ['recent-messages-log-length', LOW_LEVEL_LOG],
  ['distributed.comm.recent-messages-log-length', LOW_LEVEL_LOG],
]);
