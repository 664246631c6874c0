import type { Clock } from '../api/clock.ts';
import type { Builtins, Logger } from '../api/plugin.ts';
import { token, type Token } from '../api/token.ts';
import type { LoadedConfig } from '../config/load.ts';
import type { Config } from '../config/types.ts';

/** Services that every plugin can ask its context for. */
export const CLOCK: Token<Clock> = token('clock');
export const LOGGER: Token<Logger> = token('logger');

/** Values that a host receives. */
export const BUILTINS: Token<Builtins> = token('builtins');
export const CONFIG: Token<Config> = token('config');
export const CONFIG_FOLDER: Token<string> = token('config-folder');
export const LOADED_CONFIG: Token<LoadedConfig> = token('loaded-config');
export const SERVER_ID: Token<string> = token('server-id');
