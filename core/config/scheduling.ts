/** The section `scheduling`: Mars' spelling of its words, and which of them are ignored. */
import { type ConfigOrigin, type Problem, problemLine, type Segment } from './errors.ts';
import { isPlainObject } from '../util/plain-object.ts';
import type { Config } from './types.ts';

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

/** What the preset of each name says in words of other sections; what is written there has precedence. */
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

/** Who writes a quota or a hard limit wants them to act: `worker.memoryAdmission` is `quota` then, unless it is written. */
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

/** What the schema cannot say: a quota above the hard limit would never be used up. */
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
