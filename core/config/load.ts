import { dirname, extname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { YardmasterError } from '../api/errors.ts';
import { isPlainObject } from '../util/values.ts';
import type { ConfigPart } from '../shared/settings.ts';
import {
  checkerOf,
  type ConfigLayers,
  type LoadedConfig,
  presetOf,
  type ReadConfig,
} from './check.ts';
import { IN_CODE } from './problems.ts';
import type { Source } from './read-source.ts';
import { type ConfigSchema, configSchema, type PresetName } from './schema.ts';
import type { Config, ConfigInput } from './types.ts';

/**
 * Reads configurations: files in YAML or JSON, modules whose default export they are, and objects in code.
 *
 * @typeParam Full - a checked configuration, with the sections of what is built in
 * @typeParam Input - the same as it is written
 */
export interface ConfigReader<Full = Config, Input = ConfigInput> {
  /** The JSON schema of a whole configuration. */
  readonly schema: ConfigSchema;
  /**
   * Reads and checks a file.
   * @param file - path, relative to the current folder
   * @param layers - configurations below and above it
   * @throws YardmasterError `ERR_CONFIG` with every problem of the file
   */
  loadFile(file: string, layers?: ConfigLayers): Promise<LoadedConfig<Full>>;
  /**
   * As {@link loadFile}, with the parts that are valid when there are problems.
   * @throws YardmasterError `ERR_CONFIG` when the file cannot be read at all
   */
  readFile(file: string, layers?: ConfigLayers): Promise<ReadConfig<Full>>;
  /**
   * Checks a configuration that is given in code.
   * @param folder - what relative `use` paths are relative to; default: the current folder
   * @param layers - configurations below and above it
   * @throws YardmasterError `ERR_CONFIG` with every problem
   */
  loadObject(value: Input, folder?: string, layers?: ConfigLayers): LoadedConfig<Full>;
  /** As {@link loadObject}, with the parts that are valid when there are problems. */
  readObject(value: Input, folder?: string, layers?: ConfigLayers): ReadConfig<Full>;
  /** The settings of the section `scheduler` that a preset stands for. */
  preset(name: PresetName): object;
}

/** @param parts - of what is built in */
export function configReader<Full extends Config = Config, Input extends ConfigInput = ConfigInput>(
  parts: readonly ConfigPart[],
): ConfigReader<Full, Input> {
  const schema = configSchema(parts);
  const checked = checkerOf<Full>(schema, parts);
  const readFile = async (file: string, layers: ConfigLayers = {}): Promise<ReadConfig<Full>> => {
    const path = resolve(file);
    const source = isModule(path) ? await importSource(file, path) : await readText(file, path);
    return { ...checked(source, layers), folder: dirname(path) };
  };
  const readObject: ConfigReader<Full, Input>['readObject'] = (value, folder, layers = {}) => {
    const found = checked({ value, origin: IN_CODE }, layers);
    return { ...found, folder: resolve(folder ?? process.cwd()) };
  };
  return {
    schema,
    readFile,
    readObject,
    loadFile: async (file, layers) => validOnly(await readFile(file, layers)),
    loadObject: (value, folder, layers) => validOnly(readObject(value, folder, layers)),
    preset: (name) => presetOf(name, parts),
  };
}

function validOnly<Full>({ error, ...loaded }: ReadConfig<Full>): LoadedConfig<Full> {
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
