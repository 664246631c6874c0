import { briefly, YardmasterError } from '../api/errors.ts';
import type { UseEntry } from '../api/plugin.ts';
import { SLOT_NAMES } from '../api/policies.ts';
import { isPlainObject } from '../util/values.ts';
import { type ConfigOrigin, problemLine } from './problems.ts';
import type { Problem, Segment } from '../shared/schema.ts';
import type { Checked, Written } from '../shared/settings.ts';
import type { SCHEDULER_SCHEMA, SCHEDULING_SCHEMA, WORKER_SCHEMA } from './schema.ts';

export type { BytesInput, DurationInput, ExtensionInput } from '../shared/settings.ts';
export type { OnError, PerSlot, PluginEntry } from './schema.ts';

// The types of a configuration. Its settings are stated in `core/config/schema.ts`: the type, unit, bounds,
// default and description of each, once.

/** The section `scheduler`, checked and complete; times in milliseconds, sizes in bytes. */
export type SchedulerConfig = Checked<typeof SCHEDULER_SCHEMA>;
/** The section `scheduler.activeMemoryManager`, checked; times in milliseconds. */
export type AmmConfig = SchedulerConfig['activeMemoryManager'];
/** The section `scheduler.rebalance`, checked. Fractions are of the memory limit of each worker. */
export type RebalanceConfig = SchedulerConfig['rebalance'];
/** The section `scheduler.workStealing`, checked; times in milliseconds. */
export type WorkStealingConfig = SchedulerConfig['workStealing'];
/** The section `scheduler.coordination`, checked; times in milliseconds, sizes in bytes. */
export type CoordinationConfig = SchedulerConfig['coordination'];
/** The section `scheduling`, checked; times in milliseconds. What each does: `docs/config.md`. */
export type SchedulingConfig = Checked<typeof SCHEDULING_SCHEMA>;
/** The section `worker`, checked; times in milliseconds, sizes in bytes. */
export type WorkerConfig = Checked<typeof WORKER_SCHEMA>;
/** The section `worker.memory`, checked. Parts of the memory limit; 0: never. */
export type WorkerMemoryConfig = WorkerConfig['memory'];

/** A configuration after it was checked: complete, frozen, times in milliseconds, sizes in bytes. */
export interface Config {
  readonly scheduler: SchedulerConfig;
  readonly scheduling: SchedulingConfig;
  readonly worker: WorkerConfig;
}

/** A configuration as it is written; everything has a default. `docs/config.md` explains each key. */
export interface ConfigInput {
  readonly scheduler?: Written<typeof SCHEDULER_SCHEMA>;
  /** Mars' spelling of the keys (`mem_quota_size`) is for files. */
  readonly scheduling?: Written<typeof SCHEDULING_SCHEMA>;
  readonly worker?: Written<typeof WORKER_SCHEMA>;
}

/**
 * Types a configuration that is written as a module. Returns what it is given.
 * @throws YardmasterError `ERR_CONFIG` when that is no object
 */
export function defineConfig(config: ConfigInput): ConfigInput {
  if (isPlainObject(config)) return config;
  throw new YardmasterError(
    'ERR_CONFIG',
    `defineConfig wants a configuration, an object such as { scheduler: { … }, worker: { … } }, got ${briefly(config)}`,
  );
}

// The section `scheduling`: Mars' spelling of its words, and which of them are ignored.

const SECTION = 'scheduling';

/** Words of Mars that a configuration may have and that are ignored, with what is done instead. */
const IGNORED: Readonly<Record<string, string>> = {
  submitPeriod: 'tasks are sent as soon as they can run',
  dataPrepareTimeout: 'inputs are fetched until no worker has them',
  speculation: 'no task runs twice at once',
  autoscale: 'clusters do not change their size by themselves',
};

/** Words that act only with `worker.memoryAdmission: quota`. */
const QUOTA_WORDS = ['memQuotaSize', 'memHardLimit'] as const;
const OF_THE_QUOTA = 'it acts with worker.memoryAdmission: quota';

/** The presets by name, in terms of other sections; what is written there has precedence. */
const PRESETS: Readonly<Record<string, { readonly policies: object; readonly slotWork: number }>> =
  {
    mars: { policies: { queuing: 'mars', ordering: 'mars' }, slotWork: 0 },
  };

/**
 * `mem_quota_size` is `memQuotaSize`. A mere name is that of a preset, whose words take their places in
 * `scheduler`.
 */
export function normaliseScheduling(given: unknown): {
  value: unknown;
  problems: Problem[];
  /** Words of the section that were left out, because they have no effect. */
  ignored: string[];
} {
  const problems: Problem[] = [];
  const root = withPreset(given);
  if (!isPlainObject(root) || !isPlainObject(root[SECTION])) {
    return { value: root, problems, ignored: [] };
  }
  const section = camelKeys(root[SECTION], [SECTION], problems);
  const words = Object.entries(section);
  const isIgnored = (word: string): boolean => Object.hasOwn(IGNORED, word);
  const acting = words.filter(([word]) => !isIgnored(word));
  const ignored = words.flatMap(([word, value]) => (isIgnored(word) && value !== null ? word : []));
  const value = { ...root, [SECTION]: Object.fromEntries(acting) };
  return { value: withAdmission(value, section), problems, ignored };
}

/** A quota or a hard limit that is written shall act: `worker.memoryAdmission` is `quota` then, unless it is written. */
function withAdmission(
  root: Readonly<Record<string, unknown>>,
  section: Readonly<Record<string, unknown>>,
): unknown {
  const worker = root['worker'] ?? {};
  const isAsked = QUOTA_WORDS.some((word) => section[word] !== undefined && section[word] !== null);
  if (!isAsked || !isPlainObject(worker) || worker['memoryAdmission'] !== undefined) return root;
  return { ...root, worker: { memoryAdmission: 'quota', ...worker } };
}

function withPreset(root: unknown): unknown {
  if (!isPlainObject(root) || root[SECTION] === undefined) return root;
  const section = typeof root[SECTION] === 'string' ? { preset: root[SECTION] } : root[SECTION];
  const name = isPlainObject(section) ? section['preset'] : undefined;
  const scheduler = root['scheduler'] ?? {};
  const isKnown = typeof name === 'string' && Object.hasOwn(PRESETS, name);
  const preset = isKnown ? PRESETS[name] : undefined;
  if (preset === undefined || !isPlainObject(scheduler)) return { ...root, [SECTION]: section };
  const policies = scheduler['policies'] ?? {};
  return {
    ...root,
    [SECTION]: section,
    scheduler: {
      ...preset,
      ...scheduler,
      policies: isPlainObject(policies) ? { ...preset.policies, ...policies } : policies,
    },
  };
}

/** `subtask_max_retries` → `subtaskMaxRetries`. */
export function camelCase(key: string): string {
  return key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** Applies the settings that other sections have under other names; they replace those. */
export function applyScheduling(config: Config): Config {
  const { scheduler, worker, scheduling } = config;
  const { subtaskMaxReschedules, subtaskCancelTimeout, enableKillSlot } = scheduling;
  const allowedFailures = subtaskMaxReschedules ?? scheduler.allowedFailures;
  const killGrace = enableKillSlot ? (subtaskCancelTimeout ?? worker.killGrace) : Infinity;
  return {
    ...config,
    scheduler: { ...scheduler, allowedFailures },
    worker: { ...worker, killGrace, memory: admission(config) },
  };
}

/** A rule beyond the schema: a quota above the hard limit would never be used up. */
export function schedulingProblems({ scheduling, worker }: Config): Problem[] {
  const bytesOf = (share: number): number => {
    if (share > 1) return share;
    return worker.memoryLimit > 0 ? share * worker.memoryLimit : NaN;
  };
  const { memQuotaSize, memHardLimit } = scheduling;
  const areShares = memQuotaSize <= 1 && memHardLimit <= 1;
  const isAbove = areShares
    ? memQuotaSize > memHardLimit
    : bytesOf(memQuotaSize) > bytesOf(memHardLimit);
  if (!isAbove) return [];
  const message = `must not be above scheduling.memHardLimit: ${shown(memQuotaSize)} is more than ${shown(memHardLimit)}`;
  return [{ at: [SECTION, 'memQuotaSize'], message }];
}

function shown(shareOrBytes: number): string {
  return shareOrBytes <= 1 ? `${100 * shareOrBytes} %` : `${shareOrBytes} bytes`;
}

/** With a quota nothing is paused: what is admitted is expected to fit. */
function admission({ worker, scheduling }: Config): Config['worker']['memory'] {
  const { memory, memoryAdmission } = worker;
  if (memoryAdmission !== 'quota') return memory;
  const { memQuotaSize: quota, memHardLimit: hardLimit } = scheduling;
  return { quota, hardLimit, ...memory, pause: 0 };
}

/**
 * One line for each word of the section that was written and has no effect, and for a quota without a memory
 * limit.
 * @param root - as it was written, without the words that are ignored
 * @param config - the same, checked
 */
export function schedulingNotes(
  root: unknown,
  ignored: readonly string[],
  { worker }: Config,
  origin: ConfigOrigin,
): string[] {
  const section = isPlainObject(root) && isPlainObject(root[SECTION]) ? root[SECTION] : {};
  const hasQuota = worker.memoryAdmission === 'quota';
  const idle = QUOTA_WORDS.filter((word) => {
    return !hasQuota && Object.hasOwn(section, word) && section[word] !== null;
  });
  const note = (word: string, instead: string): string =>
    problemLine(
      { at: [SECTION, word], message: `has no effect: ${instead}`, aboutKey: true },
      origin,
    );
  return [
    ...unlimitedQuota(worker, origin),
    ...idle.map((word) => note(word, OF_THE_QUOTA)),
    ...ignored.map((word) => note(word, IGNORED[word] as string)),
  ];
}

/** Without a limit a worker neither measures nor bounds its memory, so that every task is admitted. */
function unlimitedQuota(
  { memoryAdmission, memoryLimit }: Config['worker'],
  origin: ConfigOrigin,
): string[] {
  if (memoryAdmission !== 'quota' || memoryLimit > 0) return [];
  const message =
    'quota acts on workers with a memory limit only: worker.memoryLimit is 0, which is unlimited, unless --memory-limit or memoryLimitBytes says otherwise; set a limit such as "4 GiB"';
  return [problemLine({ at: ['worker', 'memoryAdmission'], message }, origin)];
}

function camelKeys(
  written: Readonly<Record<string, unknown>>,
  at: readonly Segment[],
  problems: Problem[],
): Record<string, unknown> {
  const renamed = new Map<string, unknown>();
  for (const [key, value] of Object.entries(written)) {
    const name = camelCase(key);
    if (renamed.has(name)) {
      const message = 'is written twice, in two spellings; leave one out';
      problems.push({ at: [...at, name], message, aboutKey: true });
    }
    renamed.set(name, value);
  }
  return Object.fromEntries(renamed);
}

// `scheduler.workStealing.mode`: another way to fill the policy slot `stealing`.

/** Fills the slot `stealing` as the mode says; without a mode nothing changes. */
export function applyStealingMode(config: Config): Config {
  const { scheduler } = config;
  const { mode, horizon } = scheduler.workStealing;
  if (mode === undefined) return config;
  const stealing: UseEntry =
    mode === 'calm' ? { use: 'calm', options: { horizonMs: horizon } } : { use: 'dask' };
  return {
    ...config,
    scheduler: { ...scheduler, policies: { ...scheduler.policies, stealing } },
  };
}

/** A rule beyond the schema: the slot is filled once. */
export function stealingModeProblems({ scheduler }: Config): Problem[] {
  const { policies, workStealing } = scheduler;
  if (policies.stealing === undefined || workStealing.mode === undefined) return [];
  const message = 'fills the slot that scheduler.policies.stealing fills as well; leave one out';
  return [{ at: ['scheduler', 'workStealing', 'mode'], message, aboutKey: true }];
}

/**
 * Brings every place where an extension is named into one form, `{ use, options }`:
 *
 * - only a name: `plugins: [metrics]`
 * - in code, the thing itself: `plugins: [counter]`, `plugins: [new Counter()]`
 * - Dask's spelling of a policy of the memory manager: `class:` with the options inline; and of its
 *   measure: `managed_in_memory`
 * - Dask's `false` for thresholds and limits of the memory of workers
 *
 * Entries without a valid form stay as they are, and the schema reports them.
 */
export function normaliseEntries(root: unknown): { value: unknown; problems: Problem[] } {
  const problems: Problem[] = [];
  const withMemory = within(root, 'worker', (worker) =>
    within(worker, 'memory', (memory) => withoutFalse(memory, problems)),
  );
  const withWorkers = within(withMemory, 'worker', (worker) =>
    ['plugins', 'preload', 'nannyPlugins', 'nannyPreload'].reduce<unknown>(
      (changed, field) => within(changed, field, (items) => each(items, plain)),
      worker,
    ),
  );
  const value = within(withWorkers, 'scheduler', (scheduler) => {
    let result = within(scheduler, 'transport', plain);
    for (const field of ['plugins', 'preload']) {
      result = within(result, field, (items) => each(items, plain));
    }
    for (const field of ['policies', 'shadows']) {
      result = within(result, field, (policies) =>
        SLOT_NAMES.reduce<unknown>((changed, slot) => within(changed, slot, plain), policies),
      );
    }
    result = within(result, 'clientPolicies', (slots) =>
      SLOT_NAMES.reduce<unknown>(
        (changed, slot) => within(changed, slot, (offered) => eachValue(offered, plain)),
        slots,
      ),
    );
    result = within(result, 'rebalance', (rules) => within(rules, 'measure', daskMeasure));
    return within(result, 'activeMemoryManager', (manager) =>
      within(within(manager, 'measure', daskMeasure), 'policies', (items) =>
        each(items, (item, index) => {
          const at = [...AMM_POLICIES, index];
          const entry = daskOrPlain(item, at, problems);
          refuseRetireWorker(entry, at, problems);
          return entry;
        }),
      ),
    );
  });
  return { value, problems };
}

const THRESHOLDS = ['target', 'spill', 'pause', 'terminate', 'transfer'];

/** False means that there is none: a threshold of 0, a limit of Infinity. */
function withoutFalse(memory: unknown, problems: Problem[]): unknown {
  const limited = within(memory, 'maxSpill', (value) => (value === false ? null : value));
  return THRESHOLDS.reduce<unknown>((changed, name) => {
    return within(changed, name, (value) => {
      if (value !== true) return value === false ? 0 : value;
      const at = ['worker', 'memory', name];
      problems.push({ at, message: 'must be a number from 0 to 1, or false (got true)' });
      return 0;
    });
  }, limited);
}

const AMM_POLICIES = ['scheduler', 'activeMemoryManager', 'policies'];

function plain(item: unknown): unknown {
  return typeof item === 'string' || isExtension(item) ? { use: item } : item;
}

function daskOrPlain(item: unknown, at: readonly Segment[], problems: Problem[]): unknown {
  if (!isPlainObject(item) || !('class' in item) || isExtension(item)) return plain(item);
  if ('use' in item || 'options' in item) {
    problems.push({
      at: [...at, 'class'],
      message: 'cannot stand next to use or options; with class the options are inline',
      aboutKey: true,
    });
  }
  const { class: use, ...options } = item;
  return { use, options };
}

/** The plugin `amm` refuses what is no name, such as the class itself in code, when it loads it. */
const RETIRE_WORKER = /^(retire-worker|distributed\.active_memory_manager\.RetireWorker)$/;

function refuseRetireWorker(item: unknown, at: readonly Segment[], problems: Problem[]): void {
  const use = isPlainObject(item) ? item['use'] : undefined;
  if (typeof use !== 'string' || !RETIRE_WORKER.test(use)) return;
  problems.push({
    at,
    message: `must not name ${use}: retireWorkers adds it, one for each worker that leaves, and it leaves by itself; remove the entry`,
  });
}

/** `unmanaged_old` is unmanagedOld; older releases said managed_in_memory and managed_spilled. */
function daskMeasure(name: unknown): unknown {
  if (typeof name !== 'string') return name;
  const words = name.replaceAll('-', '_');
  if (words === 'managed_in_memory') return 'managed';
  if (words === 'managed_spilled') return 'spilled';
  return words.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** True when it is the thing itself: a class, an instance, or a definition. */
function isExtension(item: unknown): boolean {
  if (typeof item === 'function') return true;
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return false;
  if (!isPlainObject(item)) return true;
  try {
    if ('use' in item) return false;
    return typeof item['kind'] === 'string' || Object.values(item).some(isFunction);
  } catch {
    return true; // It throws when it is read, which nothing that was written in a configuration does.
  }
}

function each(items: unknown, change: (item: unknown, index: number) => unknown): unknown {
  return Array.isArray(items) ? items.map(change) : items;
}

function eachValue(items: unknown, change: (item: unknown) => unknown): unknown {
  if (!isPlainObject(items)) return items;
  return Object.fromEntries(Object.entries(items).map(([name, item]) => [name, change(item)]));
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function';
}

/** A copy of an object in which one field is replaced, if it has that field. */
function within(root: unknown, key: string, change: (value: unknown) => unknown): unknown {
  if (!isPlainObject(root) || !Object.hasOwn(root, key)) return root;
  return { ...root, [key]: change(root[key]) };
}
