import type { Clock } from '../api/clock.ts';
import type { Builtins, Logger } from '../api/plugin.ts';
import { token, type Token } from '../api/token.ts';
import type { LoadedConfig } from '../config/check.ts';
import type { Config } from '../config/types.ts';

/** Services that every plugin can ask its context for. */
export const CLOCK: Token<Clock> = token('clock');
export const LOGGER: Token<Logger> = token('logger');

/** Values that a host receives. */
export const BUILTINS: Token<Builtins> = token('builtins');
export const CONFIG: Token<Config> = token('config');
export const MODULES: Token<ModuleSource> = token('modules');
export const CONFIG_FOLDER: Token<string> = token('config-folder');
export const LOADED_CONFIG: Token<LoadedConfig> = token('loaded-config');
export const SERVER_ID: Token<string> = token('server-id');

/** Modules outside of this package that a configuration may name. */
export interface ModuleSource {
  /** The folder that relative paths start from. */
  readonly folder: string;
  /**
   * Finds a module.
   * @param what - what it is expected to be, for messages: `plugin`, `policy`
   * @param builtins - names of what is built in, which messages suggest
   * @returns its path
   * @throws YardmasterError `ERR_PLUGIN_LOAD`
   */
  locate(module: string, what: string, builtins: readonly string[]): string;
  /** @throws YardmasterError `ERR_PLUGIN_LOAD` */
  import(path: string, use: string, what: string): Promise<Readonly<Record<string, unknown>>>;
  /** The name of a module for people, by its path and what names it. */
  sourceOf(path: string, use: string): string;
}
