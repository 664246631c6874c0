import {
  duration,
  flag,
  milliseconds,
  number,
  type ReadValue,
  saturation,
  size,
  text,
  texts,
  whole,
} from './values.ts';

/** How one key of Dask's configuration is taken. */
export interface Rule {
  /** Below `distributed`. */
  readonly key: string;
  /** Places in our configuration; `dask.…` are options of the plugin `dask`. */
  readonly to: readonly string[];
  /** Undefined: the plugin `dask` reads the key itself. */
  readonly read?: ReadValue;
}

const LOG_LENGTH_MAX = 10_000_000;

/** Of the memory limit. */
const fraction = number(0, 1);
const limit = duration({ noneIsInfinite: true });
const logLength = whole(0, LOG_LENGTH_MAX);
const queuing = 'scheduler.policies.queuing.options';

const rule = (key: string, to: string | readonly string[], read?: ReadValue): Rule => ({
  key,
  to: typeof to === 'string' ? [to] : to,
  ...(read === undefined ? {} : { read }),
});

/** Every key with an equivalent that is one value. Defaults of Dask's keys are not applied. */
export const RULES: readonly Rule[] = [
  rule('scheduler.allowed-failures', 'scheduler.allowedFailures', whole(0)),
  rule('scheduler.bandwidth', 'scheduler.bandwidth', size),
  rule('scheduler.default-data-size', 'scheduler.defaultDataSize', size),
  rule('scheduler.worker-ttl', 'scheduler.workerTtl', limit),
  rule('scheduler.idle-timeout', 'scheduler.idleTimeout', limit),
  rule('scheduler.no-workers-timeout', 'scheduler.noWorkersTimeout', limit),
  rule('scheduler.unknown-task-duration', 'scheduler.unknownTaskDuration', duration()),
  rule('scheduler.validate', 'scheduler.validate', flag),
  rule('scheduler.work-stealing', 'scheduler.workStealing.start', flag),
  rule(
    'scheduler.work-stealing-interval',
    'scheduler.workStealing.interval',
    duration({ unit: 'ms' }),
  ),
  rule('scheduler.worker-saturation', `${queuing}.workerSaturation`, saturation),
  rule('scheduler.rootish-taskgroup', `${queuing}.rootishTaskgroup`, whole(0)),
  rule(
    'scheduler.rootish-taskgroup-dependencies',
    `${queuing}.rootishTaskgroupDependencies`,
    whole(0),
  ),
  rule('scheduler.active-memory-manager.start', 'scheduler.activeMemoryManager.start', flag),
  rule(
    'scheduler.active-memory-manager.interval',
    'scheduler.activeMemoryManager.interval',
    duration(),
  ),
  rule('scheduler.active-memory-manager.measure', 'scheduler.activeMemoryManager.measure', text),
  rule('worker.memory.rebalance.measure', 'scheduler.rebalance.measure', text),
  rule('worker.memory.rebalance.sender-min', 'scheduler.rebalance.senderMin', fraction),
  rule('worker.memory.rebalance.recipient-max', 'scheduler.rebalance.recipientMax', fraction),
  rule(
    'worker.memory.rebalance.sender-recipient-gap',
    'scheduler.rebalance.senderRecipientGap',
    fraction,
  ),
  // Dask's documentation has this name, too.
  rule('memory.recent-to-old-time', 'scheduler.recentToOldTime', duration()),
  rule('worker.memory.recent-to-old-time', 'scheduler.recentToOldTime', duration()),
  rule(
    'admin.low-level-log-length',
    ['scheduler.transitionLogLength', 'scheduler.eventLogLength'],
    logLength,
  ),
  // These two are the names of releases before 2023.10, and win over the common one.
  rule('scheduler.transition-log-length', 'scheduler.transitionLogLength', logLength),
  rule('scheduler.events-log-length', 'scheduler.eventLogLength', logLength),
  rule('diagnostics.erred-tasks.max-history', 'scheduler.erredTaskLogLength', whole(0, 10_000)),
  rule(
    'scheduler.locks.lease-timeout',
    ['scheduler.coordination.leaseTimeout', 'dask.leaseTimeoutMs'],
    milliseconds,
  ),
  rule('scheduler.locks.lease-validation-interval', 'dask.leaseCheckIntervalMs', milliseconds),
  rule('scheduler.contact-address', 'dask.contactAddress', text),
  rule('scheduler.blocked-handlers', 'dask.blockedHandlers', texts),
  rule('scheduler.pickle', 'dask.schedulerPython', flag),
  rule('adaptive.target-duration', 'dask.targetDurationMs', milliseconds),
  rule('comm.socket-backlog', 'dask.socketBacklog', whole(1, 1_000_000)),
  rule('comm.timeouts.connect', 'dask.connectTimeoutMs', milliseconds),
  rule('comm.default-scheme', 'dask.protocol', text),
  rule('comm.require-encryption', 'dask.protocol'),
  rule('comm.tls.ca-file', 'dask.tls.caFile'),
  rule('comm.tls.scheduler.cert', 'dask.tls.cert'),
  rule('comm.tls.scheduler.key', 'dask.tls.key'),
  rule('comm.tls.ciphers', 'dask.tls.ciphers'),
  rule('comm.tls.min-version', 'dask.tls.minVersion'),
  rule('comm.tls.max-version', 'dask.tls.maxVersion'),
];

/** Sections of which a scheduler reads keys: what has no equivalent there is reported as ignored. */
export const SCHEDULER_SECTIONS: readonly string[] = [
  'distributed.scheduler',
  'distributed.worker.memory.rebalance',
  'distributed.worker.memory.recent-to-old-time',
  'distributed.memory',
  'distributed.comm',
  'distributed.admin',
  'distributed.diagnostics',
  'distributed.dashboard',
  'distributed.logging',
  'logging',
];

/** Keys of those sections that only clients and workers of Dask read. */
export const PEER_SECTIONS: readonly string[] = [
  'distributed.comm.retry',
  'distributed.comm.tls.client',
  'distributed.comm.tls.worker',
  'distributed.comm.websockets',
  'distributed.comm.compression',
  'distributed.comm.offload',
  'distributed.comm.shard',
  'distributed.comm.timeouts.tcp',
  'distributed.dashboard.link',
  'distributed.diagnostics.computations',
  'distributed.admin.large-graph-warning-threshold',
  'distributed.admin.max-error-length',
];

/** Why keys are ignored, by section; the first that fits counts. */
export const REASONS: readonly (readonly [section: string, reason: string])[] = [
  ['distributed.scheduler.http', 'there are no HTTP routes of Python'],
  ['distributed.scheduler.dashboard', 'there is no dashboard, only a page with the status'],
  ['distributed.dashboard', 'there is no dashboard, only a page with the status'],
  ['distributed.scheduler.allowed-imports', 'messages never make the scheduler import a module'],
  ['distributed.scheduler.reuse-broadcast-comm', 'connections to workers are always reused'],
  ['distributed.scheduler.events-cleanup-delay', 'the log of events is bounded by topics instead'],
  ['distributed.logging', 'the flag --log-level chooses what is logged'],
  ['logging', 'the flag --log-level chooses what is logged'],
  ['distributed.admin.log-format', 'the flag --log-format chooses how logs look'],
  ['distributed.admin.pdb-on-err', 'there is no Python debugger in the scheduler'],
  ['distributed.admin.event-loop', 'the scheduler is no Python process'],
  ['distributed.admin.tick', 'the scheduler reports slow events by its own rules'],
];

/** Keys of the section `distributed.scheduler` that Dask knows and this scheduler does not. */
export const KNOWN_KEYS: readonly string[] = [
  'allowed-imports',
  'dashboard',
  'events-cleanup-delay',
  'http',
  'pickle',
  'preload',
  'preload-argv',
  'reuse-broadcast-comm',
  'active-memory-manager',
  'default-task-durations',
  'locks',
];
