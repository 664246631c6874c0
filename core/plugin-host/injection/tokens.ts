import type { Clock } from '../../api/timing/clock.ts';
import type { Builtins, Logger, Token } from '../../api/plugin.ts';
import { token } from '../../api/plugin.ts';
import type { Container } from './container.ts';
import type { EventBus } from '../event-bus.ts';
import type { HookRegistry } from '../hook-table.ts';
import type { PluginHost } from '../loaded-plugin.ts';
import type { PluginLifecycle } from '../plugin-lifecycle.ts';
import type { PluginResolver } from '../loading/plugin-resolver.ts';
import type { PolicySlotTable } from '../policy-slots.ts';

/** Services that every plugin can ask its context for. */
export const CLOCK: Token<Clock> = token('clock');
export const LOGGER: Token<Logger> = token('logger');

/** Parts of a host, for each other. */
export const BUILTINS: Token<Builtins> = token('builtins');
export const CONFIG_FOLDER: Token<string> = token('config-folder');
export const CONTAINER: Token<Container> = token('container');
export const EVENT_BUS: Token<EventBus> = token('event-bus');
export const HOOKS: Token<HookRegistry> = token('hook-registry');
export const HOST: Token<PluginHost> = token('plugin-host');
export const LIFECYCLE: Token<PluginLifecycle> = token('plugin-lifecycle');
export const RESOLVER: Token<PluginResolver> = token('plugin-resolver');
export const SLOTS: Token<PolicySlotTable> = token('policy-slots');
