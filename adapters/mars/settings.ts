/** The section `scheduling` of the configuration: the words of Mars' scheduling service, and what they mean for others. */
import type { Problem, Segment } from '../../core/shared/schema.ts';
import {
  camelCase,
  type Checked,
  choice,
  type ConfigPart,
  duration,
  flag,
  memory,
  section,
  type Sections,
  type Setting,
  type Spelled,
  whole,
  type Written,
} from '../../core/shared/settings.ts';
import { isPlainObject } from '../../core/util/values.ts';

const SECTION = 'scheduling';

const WORDS = section(
  'Scheduling service',
  "The words of Mars' scheduling service. Its own spelling, subtask_max_retries, works too.",
  {
    preset: choice(
      'Preset',
      "mars: the three rules of Mars' scheduling service decide what runs. The same as policies.queuing: mars, policies.ordering: mars and slotWork: 0 of the section scheduler, unless these are written. The section may also be this name alone. Default: none.",
      ['mars'],
    ),
    subtaskMaxRetries: whole(
      'Retries',
      'How often a task that fails is tried again when its submission does not say. 0: not at all. Takes the place of scheduler.retries.',
    ),
    subtaskMaxReschedules: whole(
      'Reschedules',
      'How often a task whose worker died is placed again, on workers that it has not been on if there are others. Takes the place of scheduler.allowedFailures.',
    ),
    subtaskCancelTimeout: duration(
      'Patience with cancelled tasks',
      'Time after which the thread of a cancelled task that continues is terminated. Replaces worker.killGrace.',
    ),
    enableKillSlot: flag(
      'End threads of cancelled tasks',
      'Otherwise a cancelled task that does not look at its signal runs to its end, as with worker.killGrace: inf.',
      true,
    ),
    memQuotaSize: memory(
      'Memory quota',
      'What the tasks that run on a worker may be expected to use together, of its memory limit. For worker.memoryAdmission: quota, which it implies.',
      { default: '80%' },
    ),
    memHardLimit: memory(
      'Hard limit',
      'Beyond this use of the memory limit no task begins beside others. For worker.memoryAdmission: quota, which it implies.',
      { default: '95%' },
    ),
  },
);

/** The section `scheduling`: the configuration of Mars' scheduling service. A name alone is that of a preset. */
const SCHEDULING_SCHEMA = { ...WORDS, type: ['object', 'string'] } as object as Setting<
  Checked<typeof WORDS>,
  Written<typeof WORDS> | 'mars',
  true
>;

type Scheduling = Checked<typeof SCHEDULING_SCHEMA>;

/** The settings that the words mean something for. */
interface Affected {
  readonly scheduler: {
    readonly allowedFailures: number;
    readonly avoidUsedWorkers: boolean;
    readonly retries: number;
  };
  readonly worker: {
    readonly killGrace: number;
    readonly memory: Readonly<Record<string, unknown>>;
    readonly memoryAdmission: string;
    readonly memoryLimit: number;
  };
}

const partsOf = (config: Sections): Affected & { readonly scheduling: Scheduling } =>
  config as never;

export const marsPart = {
  sections: { scheduling: SCHEDULING_SCHEMA },
  spell: spelled,
  problems: quotaProblems,
  apply: (config) => {
    const { scheduler, worker, scheduling } = partsOf(config);
    const { subtaskMaxReschedules, subtaskMaxRetries } = scheduling;
    const { subtaskCancelTimeout, enableKillSlot } = scheduling;
    return {
      ...config,
      scheduler: {
        ...scheduler,
        allowedFailures: subtaskMaxReschedules ?? scheduler.allowedFailures,
        avoidUsedWorkers: subtaskMaxReschedules !== undefined || scheduler.avoidUsedWorkers,
        retries: subtaskMaxRetries ?? scheduler.retries,
      },
      worker: {
        ...worker,
        killGrace: enableKillSlot ? (subtaskCancelTimeout ?? worker.killGrace) : Infinity,
        memory: admission(config),
      },
    };
  },
  notes: quotaNotes,
} as const satisfies ConfigPart;

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
 * `mem_quota_size` is `memQuotaSize`. A mere name is that of a preset, whose words take their places in `scheduler`.
 * Words that have no effect are left out.
 */
function spelled(written: unknown): Spelled {
  const root = withPreset(written);
  if (!isPlainObject(root) || !isPlainObject(root[SECTION])) return { value: root };
  const problems: Problem[] = [];
  const section = camelKeys(root[SECTION], [SECTION], problems);
  const words = Object.entries(section);
  const isIgnored = (word: string): boolean => Object.hasOwn(IGNORED, word);
  const acting = words.filter(([word]) => !isIgnored(word));
  const ignored = words.filter(([word, value]) => isIgnored(word) && value !== null);
  const value = { ...root, [SECTION]: Object.fromEntries(acting) };
  return {
    value: withAdmission(value, section),
    problems,
    notes: ignored.map(([word]) => noEffect(word, IGNORED[word] as string)),
  };
}

function noEffect(word: string, why: string): Problem {
  return { at: [SECTION, word], message: `has no effect: ${why}`, aboutKey: true };
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

/** A quota above the hard limit would never be used up. */
function quotaProblems(config: Sections): readonly Problem[] {
  const { scheduling, worker } = partsOf(config);
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
function admission(config: Sections): Readonly<Record<string, unknown>> {
  const { worker, scheduling } = partsOf(config);
  const { memory, memoryAdmission } = worker;
  if (memoryAdmission !== 'quota') return memory;
  const { memQuotaSize: quota, memHardLimit: hardLimit } = scheduling;
  return { quota, hardLimit, ...memory, pause: 0 };
}

/** Words of the quota that have no effect without it, and a quota without a memory limit. */
function quotaNotes(config: Sections, written: unknown): readonly Problem[] {
  const { memoryAdmission, memoryLimit } = partsOf(config).worker;
  const section = isPlainObject(written) && isPlainObject(written[SECTION]) ? written[SECTION] : {};
  if (memoryAdmission !== 'quota') {
    const idle = QUOTA_WORDS.filter((word) => (section[word] ?? null) !== null);
    return idle.map((word) => noEffect(word, OF_THE_QUOTA));
  }
  // Without a limit a worker neither measures nor bounds its memory, so that every task is admitted.
  if (memoryLimit > 0) return [];
  const message =
    'quota acts on workers with a memory limit only: worker.memoryLimit is 0, which is unlimited, unless --memory-limit or memoryLimitBytes says otherwise; set a limit such as "4 GiB"';
  return [{ at: ['worker', 'memoryAdmission'], message }];
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
