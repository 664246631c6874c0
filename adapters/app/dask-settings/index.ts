import { YardmasterError } from '../../../core/api/index.ts';
import { hint, show } from '../../../core/shared/words.ts';
import { loadConfigObject } from '../../../core/config/load.ts';
import type { ConfigInput } from '../../../core/config/types.ts';
import { DaskConfig, type Environment } from '../../dask/config/index.ts';
import { takeMemoryPolicies } from './memory-policies.ts';
import {
  KNOWN_KEYS,
  PEER_SECTIONS,
  REASONS,
  type Rule,
  RULES,
  SCHEDULER_SECTIONS,
} from './rules.ts';
import { type IgnoredSetting, SettingsBuilder, type TakenSetting } from './settings-builder.ts';
import { duration, flag, texts, UnusableValue } from './values.ts';

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
    builder.takeAt(entry, ['scheduler', 'defaultTaskDurations', prefix], duration());
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

/** What the checks of our own configuration find, under Dask's names. */
function checkAsConfiguration(builder: SettingsBuilder): void {
  try {
    loadConfigObject(builder.settings().config);
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
