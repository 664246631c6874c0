import { dirname, extname, resolve } from 'node:path';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { YardmasterError } from '../api/errors.ts';
import { check, type Checked, deepFreeze } from './check.ts';
import { builtAhead } from './compile-schema.ts';
import { moveDaskPlaces } from './dask-places.ts';
import { type ConfigOrigin, configError, IN_CODE, type Problem } from './errors.ts';
import { normaliseEntries } from './entries.ts';
import { type ConfigLayers, overlay } from './layers.ts';
import { isPlainObject } from '../util/plain-object.ts';
import { CONFIG_SCHEMA } from './schemas/schema.ts';
import type { Source } from './read-source.ts';
import {
  applyScheduling,
  normaliseScheduling,
  schedulingNotes,
  schedulingProblems,
} from './scheduling.ts';
import { applyStealingMode, stealingModeProblems } from './stealing-mode.ts';
import type { Config, ConfigInput } from './types.ts';
import { keepValidParts, originOf } from './valid-parts.ts';

/** A checked configuration, and what later checks need to name places in it. */
export interface LoadedConfig {
  readonly config: Config;
  readonly origin: ConfigOrigin;
  /** What was written and does nothing, one line each. */
  readonly notes: readonly string[];
  /** Folder that relative `use` paths and packages are resolved from. */
  readonly folder: string;
}

/** What {@link readConfigFile} and {@link readConfigObject} return. */
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

const require = createRequire(import.meta.url);
let makeDefaults: (() => unknown) | undefined;

/** An empty configuration has been checked by the build, so that a start with the defaults compiles and runs no check. */
function checkConfig(normal: unknown): Checked {
  if (isPlainObject(normal) && Object.keys(normal).length === 0) {
    makeDefaults ??= builtAhead(() => require('./compiled-defaults.cjs') as () => unknown);
    if (makeDefaults !== undefined) return { value: makeDefaults(), problems: [] };
  }
  return check(CONFIG_SCHEMA, normal);
}

/** What the schema says, and then what it cannot say. */
function problemsOf(normal: unknown): readonly Problem[] {
  const { value, problems } = checkConfig(normal);
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
  const { value } = checkConfig(normal);
  const config = applyStealingMode(applyScheduling(value as Config));
  const notes = schedulingNotes(normal, ignored, config, origin);
  return { config: deepFreeze(config), origin, notes };
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
