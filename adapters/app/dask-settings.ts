import { YardmasterError } from '../../core/api/index.ts';
import {
  check,
  FLAG,
  pathText,
  type Schema,
  type Segment,
  TEXT,
} from '../../core/shared/schema.ts';
import { timeText } from '../../core/shared/settings.ts';
import { hint, show } from '../../core/shared/words.ts';
import { DaskConfig, type DaskEntry, type Environment } from '../dask/config.ts';
import { type ConfigInput, configuration } from './config.ts';

/** Dask's configuration as this scheduler takes it. */
export interface DaskSettings {
  /** Equivalents in our configuration; an own configuration wins over them. */
  readonly config: ConfigInput;
  /** Options of the plugin `dask`. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Python modules, and paths, that Dask's scheduler would load. */
  readonly preload: readonly string[];
  /** Arguments for each of them, or for all. */
  readonly preloadArgv: readonly unknown[];
  readonly taken: readonly TakenSetting[];
  readonly ignored: readonly IgnoredSetting[];
}

const PREFIX = 'distributed';
const DURATIONS = `${PREFIX}.scheduler.default-task-durations`;
const PRELOAD = `${PREFIX}.scheduler.preload`;
const PRELOAD_ARGV = `${PREFIX}.scheduler.preload-argv`;

/**
 * Reads Dask's configuration and finds what it means for this scheduler.
 * @param python - the Python whose environment may hold configuration files
 * @throws YardmasterError `ERR_CONFIG` that names every key with a value that cannot be used
 */
export function readDaskSettings(env: Environment, python?: string): DaskSettings {
  const config = DaskConfig.read(env, python);
  const builder = new SettingsBuilder();
  for (const rule of RULES) takeRule(config, rule, builder);
  takeDurations(config, builder);
  takeMemoryPolicies(config, builder);
  const preload = takeList(config, PRELOAD, builder);
  const preloadArgv = takeList(config, PRELOAD_ARGV, builder);
  takeIgnored(config, builder);
  builder.completePolicies();
  checkAsConfiguration(builder);
  builder.throwProblems();
  return { ...builder.settings(), preload: preload.map(String), preloadArgv };
}

function takeRule(config: DaskConfig, rule: Rule, builder: SettingsBuilder): void {
  const entry = config.find(`${PREFIX}.${rule.key}`);
  if (entry === undefined) return;
  // Null stands for the default, except where it means "no limit" or "no".
  if (entry.value === null && !isLimit(rule) && rule.read !== flag) {
    builder.markTaken(entry, []);
    return;
  }
  builder.take(entry, rule.to, rule.read);
}

function isLimit({ key }: Rule): boolean {
  return /-(ttl|timeout)$/.test(key) && key.startsWith('scheduler.') && !key.includes('locks');
}

/** Names of prefixes are free, so that `-` and `_` matter in them. */
function takeDurations(config: DaskConfig, builder: SettingsBuilder): void {
  for (const [prefix, entry] of config.entriesOf(DURATIONS)) {
    builder.takeAt(entry, ['scheduler', 'defaultTaskDurations', prefix], duration);
  }
}

function takeList(config: DaskConfig, key: string, builder: SettingsBuilder): readonly unknown[] {
  const entry = config.find(key);
  if (entry === undefined) return [];
  try {
    const value = key === PRELOAD ? texts(entry.value) : entry.value;
    builder.markTaken(entry, ['dask.preload']);
    return Array.isArray(value) ? value : [value];
  } catch (error) {
    if (!(error instanceof UnusableValue)) throw error;
    builder.addProblem(entry, error.message);
    return [];
  }
}

function takeIgnored(config: DaskConfig, builder: SettingsBuilder): void {
  for (const section of SCHEDULER_SECTIONS) {
    for (const entry of config.below(section)) {
      const { key } = entry;
      if (builder.isKnown(key) || PEER_SECTIONS.some((peer) => isWithin(key, peer))) continue;
      const reason = REASONS.find(([within]) => isWithin(key, within))?.[1];
      builder.ignore(entry, reason ?? unknownKeyReason(key));
    }
  }
}

function unknownKeyReason(key: string): string {
  const section = `${PREFIX}.scheduler.`;
  if (!key.startsWith(section)) return 'it has no equivalent';
  const name = key.slice(section.length);
  const known = [
    ...RULES.flatMap((rule) =>
      rule.key.startsWith('scheduler.') ? rule.key.slice('scheduler.'.length) : [],
    ),
    ...KNOWN_KEYS,
  ];
  if (KNOWN_KEYS.some((each) => isWithin(name, each))) return 'it has no equivalent';
  return `Dask has no such key${hint(name, known)}`;
}

/** Reports the problems that the checks of our own configuration find, under Dask's names. */
function checkAsConfiguration(builder: SettingsBuilder): void {
  try {
    configuration.loadObject(builder.settings().config);
  } catch (error) {
    if (!YardmasterError.is(error, 'ERR_CONFIG')) throw error;
    const problems = error.data['problems'] as readonly { path: string; message: string }[];
    for (const { path, message } of problems) {
      const taken = builder.takenAt(path);
      if (taken === undefined) throw error;
      builder.addProblem(taken, message);
    }
  }
}

function isWithin(key: string, section: string): boolean {
  return key === section || key.startsWith(`${section}.`);
}

/** The settings as lines for people: what has an effect and where it comes from, and what is ignored. */
export function describeDaskSettings({ taken, ignored }: DaskSettings): string {
  if (taken.length === 0 && ignored.length === 0) {
    return "Dask's configuration says nothing about the scheduler.";
  }
  const lines = ["Dask's configuration:"];
  for (const { key, value, source, to } of taken) {
    const target = to.length === 0 ? 'the default' : to.join(' and ');
    lines.push(`  ${key} = ${show(value)} -> ${target} (${source})`);
  }
  if (ignored.length > 0) lines.push("Ignored of Dask's configuration:");
  for (const { key, source, reason } of ignored) lines.push(`  ${key}: ${reason} (${source})`);
  return lines.join('\n');
}

const KEY = 'distributed.scheduler.active-memory-manager.policies';
const PLACE = ['scheduler', 'activeMemoryManager', 'policies'];
const MODULE = 'distributed.active_memory_manager.';

/** Dask's own policies under our names. */
const POLICIES: ReadonlyMap<string, string> = new Map([
  [`${MODULE}ReduceReplicas`, 'reduce-replicas'],
]);

/**
 * The policies of Dask's Active Memory Manager. Its own ones have equivalents; classes of other packages
 * are Python, and are ignored by name. A path such as `./policies/pin.js` names one of ours.
 */
function takeMemoryPolicies(config: DaskConfig, builder: SettingsBuilder): void {
  const entry = config.find(KEY);
  if (entry === undefined) return;
  if (!Array.isArray(entry.value)) {
    builder.markTaken(entry, []);
    if (entry.value !== null) builder.addProblem(entry, 'must be a list of policies with "class"');
    return;
  }
  const policies: object[] = [];
  for (const item of entry.value as readonly unknown[]) {
    const { class: name, ...options } = (item ?? {}) as Record<string, unknown>;
    if (typeof name !== 'string') {
      builder.markTaken(entry, []);
      builder.addProblem(entry, 'must name each policy as "class: package.module.Class"');
      return;
    }
    const use = POLICIES.get(name) ?? (/^[\w]+(\.\w+)+$/.test(name) ? undefined : name);
    if (use !== undefined) policies.push({ class: use, ...options });
    else builder.ignore({ ...entry, value: name }, reasonOf(name));
  }
  builder.takeAt(entry, PLACE, () => policies);
}

function reasonOf(name: string): string {
  if (name === `${MODULE}RetireWorker`) {
    return `${name} is no policy for a configuration; retire_workers starts it`;
  }
  return (
    `the policy ${name} is a Python class and does not run here (docs/dask.md#dasks-own-configuration says why); ` +
    'write it in JavaScript (docs/policies.md), and name its file under scheduler.activeMemoryManager.policies'
  );
}

/** The treatment of one key of Dask's configuration. */
interface Rule {
  /** Below `distributed`. */
  readonly key: string;
  /** Places in our configuration; `dask.…` are options of the plugin `dask`. */
  readonly to: readonly string[];
  /** Undefined: the plugin `dask` reads the key itself. */
  readonly read?: ReadValue;
}

const LOG_LENGTH_MAX = 10_000_000;

/** The reason why a value cannot be used, to be read after the key: `must be true or false`. */
class UnusableValue extends Error {}

/**
 * Reads a value by the rule of its kind.
 * @param before - what Python takes a value for, before it is checked
 * @param after - the checked value as our configuration writes it
 */
const reading =
  (
    rule: Schema,
    before: (value: unknown) => unknown = (value) => value,
    after: (value: never) => unknown = (value) => value,
  ): ReadValue =>
  (given) => {
    const { value, problems } = check(rule, before(given), [], 'code');
    const [problem] = problems;
    if (problem === undefined) return after(value as never);
    throw new UnusableValue(problem.message);
  };

const TIME: Schema = { unit: 'ms', minimum: 0, infinite: true };
const fraction = reading({ type: 'number', minimum: 0, maximum: 1 });
const duration = reading(TIME, (value) => value, timeText);
/** A bare number is milliseconds. */
const intervalMs = reading(
  TIME,
  (value) => {
    const isBare = /^\s*\d+(\.\d+)?\s*$/.test(String(value));
    return isBare ? `${String(value)} ms` : value;
  },
  timeText,
);
/** None, and 0 where Dask takes it for none, mean that there is no such limit. */
const limit = reading(
  TIME,
  (value) => (value === null || value === 0 || value === false ? 'inf' : value),
  timeText,
);
const milliseconds = reading({ unit: 'ms', minimum: 0 });
const whole = (minimum: number, maximum?: number): ReadValue =>
  reading({ type: 'integer', minimum, maximum });
const logLength = whole(0, LOG_LENGTH_MAX);
const size = reading({ unit: 'bytes', minimum: 0 });
const text = reading(TEXT);
const texts = reading({ type: 'array', items: { type: 'string' } }, (value): unknown =>
  Array.isArray(value) ? value : value === null ? [] : [value],
);
/** Numbers count as in Python. */
const flag = reading(FLAG, (value) =>
  value === null || typeof value === 'number' ? Boolean(value) : value,
);
/** Tasks per thread; `inf` holds nothing back. */
const saturation = reading(
  { type: 'number', exclusiveMinimum: 0, wanted: 'a number above 0, or inf' },
  (value) => (/^\s*\.?inf(inity)?\s*$/i.test(String(value)) ? Infinity : value),
  (value) => (value === Infinity ? 'inf' : value),
);

const queuing = 'scheduler.policies.queuing.options';

const rule = (key: string, to: string | readonly string[], read?: ReadValue): Rule => ({
  key,
  to: typeof to === 'string' ? [to] : to,
  read,
});

/** Every key with an equivalent that is one value. Defaults of Dask's keys are not applied. */
const RULES: readonly Rule[] = [
  rule('scheduler.allowed-failures', 'scheduler.allowedFailures', whole(0)),
  rule('scheduler.bandwidth', 'scheduler.bandwidth', size),
  rule('scheduler.default-data-size', 'scheduler.defaultDataSize', size),
  rule('scheduler.worker-ttl', 'scheduler.workerTtl', limit),
  rule('scheduler.idle-timeout', 'scheduler.idleTimeout', limit),
  rule('scheduler.no-workers-timeout', 'scheduler.noWorkersTimeout', limit),
  rule('scheduler.unknown-task-duration', 'scheduler.unknownTaskDuration', duration),
  rule('scheduler.validate', 'scheduler.validate', flag),
  rule('scheduler.work-stealing', 'scheduler.workStealing.start', flag),
  rule('scheduler.work-stealing-interval', 'scheduler.workStealing.interval', intervalMs),
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
    duration,
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
  rule('memory.recent-to-old-time', 'scheduler.recentToOldTime', duration),
  rule('worker.memory.recent-to-old-time', 'scheduler.recentToOldTime', duration),
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
const SCHEDULER_SECTIONS: readonly string[] = [
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
const PEER_SECTIONS: readonly string[] = [
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

/** The reasons why keys are ignored, by section; the first that fits counts. */
const REASONS: readonly (readonly [section: string, reason: string])[] = [
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
const KNOWN_KEYS: readonly string[] = [
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

/** A key of Dask's configuration that has an effect. */
interface TakenSetting extends DaskEntry {
  /** Places in our configuration; `dask.…` are options of the plugin `dask`. */
  readonly to: readonly string[];
}

/** A key of Dask's configuration that has none. */
interface IgnoredSetting extends DaskEntry {
  readonly reason: string;
}

/** Collects what Dask's configuration means here, and every problem with it. */
class SettingsBuilder {
  private readonly config: Record<string, unknown> = {};
  private readonly options: Record<string, unknown> = {};
  private readonly taken: TakenSetting[] = [];
  private readonly ignored: IgnoredSetting[] = [];
  private readonly problems: (DaskEntry & { readonly message: string })[] = [];

  settings(): {
    config: ConfigInput;
    options: Readonly<Record<string, unknown>>;
    taken: readonly TakenSetting[];
    ignored: readonly IgnoredSetting[];
  } {
    const { config, options, taken, ignored } = this;
    return { config: config, options, taken, ignored };
  }

  /** Puts a value at dotted places. @param read - undefined: only remember that it is taken */
  take(entry: DaskEntry, to: readonly string[], read: ReadValue | undefined): void {
    this.markTaken(entry, to);
    if (read === undefined) return;
    this.read(entry, read, (value) => {
      for (const place of to) {
        const [root, ...path] = place.split('.');
        if (root === 'dask') put(this.options, path, value);
        else put(this.config, [root as string, ...path], timeAt(place, value));
      }
    });
  }

  /** Puts a value at one place of our configuration. */
  takeAt(entry: DaskEntry, path: readonly string[], read: ReadValue): void {
    this.markTaken(entry, [pathText(path)]);
    this.read(entry, read, (value) => put(this.config, path, value));
  }

  markTaken(entry: DaskEntry, to: readonly string[]): void {
    this.taken.push({ ...entry, to });
  }

  ignore(entry: DaskEntry, reason: string): void {
    this.ignored.push({ ...entry, reason });
  }

  addProblem(entry: DaskEntry, message: string): void {
    this.problems.push({ ...entry, message });
  }

  /** True when a key is taken or ignored already. */
  isKnown(key: string): boolean {
    return [...this.taken, ...this.ignored].some((entry) => entry.key === key);
  }

  /** The key of Dask behind a place of our configuration, or behind one above it. */
  takenAt(path: string): TakenSetting | undefined {
    return this.taken.find(({ to }) =>
      to.some(
        (place) => path === place || path.startsWith(`${place}.`) || path.startsWith(`${place}[`),
      ),
    );
  }

  /** Options of the queuing policy belong to the policy that follows Dask's rules. */
  completePolicies(): void {
    const { policies } = (this.config['scheduler'] ?? {}) as {
      policies?: { queuing?: Record<string, unknown> };
    };
    if (policies?.queuing !== undefined) policies.queuing['use'] = 'root-ish';
  }

  /** @throws YardmasterError `ERR_CONFIG` with all problems, one line each */
  throwProblems(): void {
    const { problems } = this;
    if (problems.length === 0) return;
    const lines = problems.map(
      ({ key, value, source, message }) => `${source}: ${key} ${withValue(message, value)}`,
    );
    const count = lines.length === 1 ? 'a problem' : `${lines.length} problems`;
    throw new YardmasterError(
      'ERR_CONFIG',
      `Dask's configuration has ${count}:\n${lines.map((line) => `  ${line}`).join('\n')}`,
      {
        problems: problems.map(({ key, message }, index) => ({
          path: key,
          message,
          line: lines[index],
        })),
      },
    );
  }

  private read(entry: DaskEntry, read: ReadValue, use: (value: unknown) => void): void {
    try {
      use(read(entry.value));
    } catch (error) {
      if (!(error instanceof UnusableValue)) throw error;
      this.addProblem(entry, error.message);
    }
  }
}

function withValue(message: string, value: unknown): string {
  return message.includes('(got ') ? message : `${message} (got ${show(value)})`;
}

/** A bare number would be seconds in our configuration. */
function timeAt(place: string, value: unknown): unknown {
  return place.endsWith('leaseTimeout') ? `${String(value)} ms` : value;
}

function put(root: Record<string, unknown>, path: readonly Segment[], value: unknown): void {
  let at = root;
  for (const segment of path.slice(0, -1)) {
    at = (at[segment] ??= {}) as Record<string, unknown>;
  }
  Object.defineProperty(at, String(path.at(-1)), {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  });
}

/** Reads a value of Dask's configuration as our configuration writes it. */
type ReadValue = (value: unknown) => unknown;
