import { dirname, extname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { YardmasterError } from '../api/errors.ts';
import { isPlainObject } from '../util/values.ts';
import { check, type Problem } from '../shared/schema.ts';
import {
  configError,
  type ConfigOrigin,
  frozenCopy,
  IN_CODE,
  keepValidParts,
  originOf,
  problemLine,
} from './problems.ts';
import type { Source } from './read-source.ts';
import { CONFIG_SCHEMA } from './schema.ts';
import {
  applyScheduling,
  applyStealingMode,
  type Config,
  type ConfigInput,
  normaliseEntries,
  normaliseScheduling,
  schedulingNotes,
  schedulingProblems,
  stealingModeProblems,
} from './types.ts';

/** A checked configuration, and what later checks need to name places in it. */
export interface LoadedConfig {
  readonly config: Config;
  readonly origin: ConfigOrigin;
  /** Notes about settings that have no effect, one line each. */
  readonly notes: readonly string[];
  /** Folder that relative `use` paths and packages are resolved from. */
  readonly folder: string;
}

/** The result of {@link readConfigFile} and {@link readConfigObject}. */
export interface ReadConfig extends LoadedConfig {
  /** `ERR_CONFIG` with every problem; then the configuration is what is left without the invalid parts. */
  readonly error: YardmasterError | undefined;
}

/**
 * Reads and checks a configuration file: YAML, JSON, or a module whose default export it is.
 * @param file - path, relative to the current folder
 * @param layers - configurations below and above it
 * @throws YardmasterError `ERR_CONFIG` with every problem of the file
 */
export async function loadConfigFile(
  file: string,
  layers: ConfigLayers = {},
): Promise<LoadedConfig> {
  return validOnly(await readConfigFile(file, layers));
}

/**
 * As {@link loadConfigFile}, with the parts that are valid when there are problems.
 * @throws YardmasterError `ERR_CONFIG` when the file cannot be read at all
 */
export async function readConfigFile(file: string, layers: ConfigLayers = {}): Promise<ReadConfig> {
  const path = resolve(file);
  const source = isModule(path) ? await importSource(file, path) : await readText(file, path);
  return { ...checkSource(source, layers), folder: dirname(path) };
}

/**
 * Checks a configuration that is given in code.
 * @param folder - what relative `use` paths are relative to; default: the current folder
 * @param layers - configurations below and above it
 * @throws YardmasterError `ERR_CONFIG` with every problem
 */
export function loadConfigObject(
  value: ConfigInput,
  folder: string = process.cwd(),
  layers: ConfigLayers = {},
): LoadedConfig {
  return validOnly(readConfigObject(value, folder, layers));
}

/** As {@link loadConfigObject}, with the parts that are valid when there are problems. */
export function readConfigObject(
  value: ConfigInput,
  folder: string = process.cwd(),
  layers: ConfigLayers = {},
): ReadConfig {
  return { ...checkSource({ value, origin: IN_CODE }, layers), folder: resolve(folder) };
}

function checkSource(
  { value, origin }: Source,
  { defaults, overrides }: ConfigLayers,
): Omit<ReadConfig, 'folder'> {
  const { value: spelled, problems: twice, ignored } = normaliseScheduling(value ?? {});
  const { value: placed, problems: double } = moveDaskPlaces(spelled);
  const { value: own, problems: early } = normaliseEntries(placed);
  const normal = overlay(
    overlay(normaliseEntries(defaults).value, own),
    normaliseEntries(overrides).value,
  );
  const problems = [...twice, ...double, ...early, ...problemsOf(normal)];
  if (problems.length === 0) return { ...finished(normal, ignored, origin), error: undefined };
  const valid = keepValidParts(normal, problems, problemsOf);
  const error = configError(problems, origin);
  return { ...finished(valid.value, ignored, originOf(valid, origin)), error };
}

/** The problems that the schema finds, and then those that it cannot express. */
function problemsOf(normal: unknown): readonly Problem[] {
  const { value, problems } = check(CONFIG_SCHEMA, normal);
  if (problems.length > 0) return problems;
  const config = value as Config;
  return [...schedulingProblems(config), ...stealingModeProblems(config)];
}

/** @param normal - without problems */
function finished(
  normal: unknown,
  ignored: readonly string[],
  origin: ConfigOrigin,
): Omit<LoadedConfig, 'folder'> {
  const { value, notes: advice } = check(CONFIG_SCHEMA, normal);
  const config = applyStealingMode(applyScheduling(value as Config));
  const notes = [
    ...advice.map((note) => problemLine(note, origin)),
    ...schedulingNotes(normal, ignored, config, origin),
  ];
  return { config: frozenCopy(config), origin, notes };
}

function validOnly({ error, ...loaded }: ReadConfig): LoadedConfig {
  if (error !== undefined) throw error;
  return loaded;
}

/** The parser is loaded only for those who have a file: it is a tenth of the modules of a start. */
async function readText(file: string, path: string): Promise<Source> {
  const { readSource } = await import('./read-source.ts');
  return readSource(file, path);
}

async function importSource(file: string, path: string): Promise<Source> {
  let module: { readonly default?: unknown };
  try {
    module = (await import(
      /* @vite-ignore */ /* webpackIgnore: true */ pathToFileURL(path).href
    )) as typeof module;
  } catch (cause) {
    const { code, message } = cause as { code?: unknown; message?: unknown };
    const advice =
      code === 'ERR_UNKNOWN_FILE_EXTENSION'
        ? '; run with "--import tsx", or compile it to JavaScript first'
        : '';
    throw new YardmasterError(
      'ERR_CONFIG',
      `the configuration module ${file} cannot be loaded: ${String(message)}${advice}`,
      { file },
      { cause },
    );
  }
  if (!isPlainObject(module.default)) {
    throw new YardmasterError(
      'ERR_CONFIG',
      `the configuration module ${file} must export its configuration as default: export default defineConfig({ … })`,
      { file },
    );
  }
  return { value: module.default, origin: { file, locate: () => undefined } };
}

function isModule(path: string): boolean {
  return ['.js', '.mjs', '.cjs', '.ts', '.mts'].includes(extname(path));
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
  if (!isPlainObject(below) || !isPlainObject(above) || 'use' in above) return above;
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

/** The keys that Dask has in `worker.memory` though the scheduler reads them, and we in `scheduler`. */
const MOVED = ['rebalance', 'recentToOldTime'] as const;

/**
 * Moves Dask's `worker.memory.rebalance` and `worker.memory.recent-to-old-time` to the section
 * `scheduler`, with keys in camel case.
 */
function moveDaskPlaces(root: unknown): { value: unknown; problems: Problem[] } {
  const problems: Problem[] = [];
  const { worker, scheduler = {} } = isPlainObject(root) ? root : {};
  const memory = isPlainObject(worker) ? worker['memory'] : undefined;
  if (!isPlainObject(root) || !isPlainObject(worker) || !isPlainObject(memory)) {
    return { value: root, problems };
  }
  const kept: Record<string, unknown> = {};
  const moved: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(memory)) {
    const name = MOVED.find((known) => known === camelCase(key));
    if (name === undefined) kept[key] = value;
    else if (isPlainObject(scheduler) && scheduler[name] !== undefined) {
      const message = `is written in scheduler.${name} as well; leave one out`;
      problems.push({ at: ['worker', 'memory', key], message, aboutKey: true });
    } else moved[name] = isPlainObject(value) ? camelKeys(value) : value;
  }
  if (Object.keys(kept).length === Object.keys(memory).length || !isPlainObject(scheduler)) {
    return { value: root, problems };
  }
  const value = {
    ...root,
    worker: { ...worker, memory: kept },
    scheduler: { ...scheduler, ...moved },
  };
  return { value, problems };
}

/** `sender-min` and `sender_min` are `senderMin`. */
function camelCase(key: string): string {
  return key.replace(/[-_]([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function camelKeys(written: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(written).map(([key, value]) => [camelCase(key), value]));
}
