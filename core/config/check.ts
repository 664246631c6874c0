/** Checks configurations as they were written: what they spell differently, presets, layers, and the schema. */
import type { YardmasterError } from '../api/errors.ts';
import { isPlainObject } from '../util/values.ts';
import { check, type Checked, isExtension, type Problem } from '../shared/schema.ts';
import {
  type ConfigPart,
  type PartPlugin,
  type Sections,
  type Spelled,
  within,
} from '../shared/settings.ts';
import { hint } from '../shared/words.ts';
import {
  configError,
  type ConfigOrigin,
  frozenCopy,
  keepValidParts,
  originOf,
  problemLine,
} from './problems.ts';
import type { Source } from './read-source.ts';
import { type PresetName, PRESETS } from './schema.ts';
import type { Config, ConfigInput } from './types.ts';

/** A checked configuration, and what later checks need to name places in it. */
export interface LoadedConfig<Full = Config> {
  readonly config: Full;
  readonly origin: ConfigOrigin;
  /** Notes about settings that have no effect, one line each. */
  readonly notes: readonly string[];
  /** Plugins of what is built in. */
  readonly plugins: readonly PartPlugin[];
  /** Folder that relative `use` paths and packages are resolved from. */
  readonly folder: string;
}

/** A configuration that may have problems. */
export interface ReadConfig<Full = Config> extends LoadedConfig<Full> {
  /** `ERR_CONFIG` with every problem; then the configuration is what is left without the invalid parts. */
  readonly error: YardmasterError | undefined;
}

/** Checks a configuration as it was written, with the layers around it. */
export function checkerOf<Full>(schema: object, parts: readonly ConfigPart[]) {
  const spelled = (written: unknown): Required<Spelled> => {
    const problems: Problem[] = [];
    const notes: Problem[] = [];
    let value = written;
    const presets: Pick<ConfigPart, 'spell'> = { spell: (root) => withPreset(root, parts) };
    for (const part of [presets, ...parts]) {
      const spelling = part.spell?.(value);
      if (spelling === undefined) continue;
      ({ value } = spelling);
      problems.push(...(spelling.problems ?? []));
      notes.push(...(spelling.notes ?? []));
    }
    return { value, problems, notes };
  };
  /** With the problems that the schema finds, or else those that it cannot express. */
  const examined = (written: unknown): Checked => {
    const checked = check(schema, written);
    if (checked.problems.length > 0) return checked;
    const sections = checked.value as Sections;
    return { ...checked, problems: parts.flatMap((part) => part.problems?.(sections) ?? []) };
  };
  /** @param checked - the configuration that is written, without problems */
  const finished = (
    written: unknown,
    { value, notes: advice }: Checked,
    ofSpelling: readonly Problem[],
    origin: ConfigOrigin,
  ): Omit<LoadedConfig<Full>, 'folder'> => {
    let sections = value as Sections;
    for (const part of parts) sections = part.apply?.(sections) ?? sections;
    const ofParts = parts.flatMap((part) => part.notes?.(sections, written) ?? []);
    const notes = [...advice, ...ofParts, ...ofSpelling];
    const config = frozenCopy(sections) as unknown as Full;
    return {
      config,
      origin,
      notes: notes.map((note) => problemLine(note, origin)),
      plugins: parts.flatMap((part) => part.plugin?.(sections['scheduler'] ?? {}) ?? []),
    };
  };
  return (
    { value, origin }: Source,
    { defaults, overrides }: ConfigLayers,
  ): Omit<ReadConfig<Full>, 'folder'> => {
    const layers = [defaults, value ?? {}, overrides].map(spelled);
    const whole = layers.reduce<unknown>((below, layer) => overlay(below, layer.value), undefined);
    const ofSpelling = layers.flatMap(({ notes }) => notes);
    const checked = examined(whole);
    const problems = [...layers.flatMap((layer) => layer.problems), ...checked.problems];
    if (problems.length === 0) {
      return { ...finished(whole, checked, ofSpelling, origin), error: undefined };
    }
    const valid = keepValidParts(whole, problems, (rest) => examined(rest).problems);
    const error = configError(problems, origin);
    const rest = examined(valid.value);
    return { ...finished(valid.value, rest, ofSpelling, originOf(valid, origin)), error };
  };
}

/** All that a preset sets in the section `scheduler`. */
export function presetOf(name: PresetName, parts: readonly ConfigPart[]): object {
  const own: unknown = PRESETS[name];
  return parts.reduce((sum, { presets }) => overlay(sum, presets?.[name]), own) as object;
}

/** Writes the preset out that a configuration names. What stands beside it wins. */
function withPreset(written: unknown, parts: readonly ConfigPart[]): Spelled {
  const problems: Problem[] = [];
  const value = within(written, 'scheduler', (scheduler) => {
    if (!isPlainObject(scheduler)) return scheduler;
    const { policies: name, ...others } = scheduler;
    if (typeof name !== 'string') return scheduler;
    if (Object.hasOwn(PRESETS, name)) {
      return overlay(presetOf(name as PresetName, parts), others);
    }
    const known = Object.keys(PRESETS);
    const message = `must be an object with a policy for each slot, or the name of a preset: ${known.join(', ')}${hint(name, known)}`;
    problems.push({ at: ['scheduler', 'policies'], message });
    return others;
  });
  return { value, problems };
}

/** Configurations around the one that is loaded. */
export interface ConfigLayers {
  /** Below it: what it says wins, key by key. */
  readonly defaults?: ConfigInput;
  /** Above it: these win, key by key. */
  readonly overrides?: ConfigInput;
}

/**
 * One configuration on top of another, key by key. A place that names an extension (`use`), a list and a
 * single value replace what is below them. Null in the place of a section says nothing.
 */
function overlay(below: unknown, above: unknown): unknown {
  if (above === undefined) return below;
  if (above === null && isPlainObject(below)) return below;
  if (!isPlainObject(below) || !isPlainObject(above)) return above;
  if ('use' in above || isExtension(above)) return above;
  const merged: Record<string, unknown> = { ...below };
  for (const [key, value] of Object.entries(above)) {
    const old = Object.hasOwn(below, key) ? below[key] : undefined;
    Object.defineProperty(merged, key, {
      value: overlay(old, value),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return merged;
}
