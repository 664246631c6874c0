import type { Clock } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import type {
  LocalPluginContext,
  NannyPlugin,
  NannyPluginDefinition,
  WorkerPlugin,
  WorkerPluginDefinition,
} from '../api/local-plugins.ts';
import type { Logger, UseEntry } from '../api/plugin.ts';
import type { WireMessage } from '../api/transport.ts';
import { IN_CODE } from '../config/check.ts';
import type { OnError } from '../config/types.ts';
import type { HookCalls } from '../kernel/ports.ts';
import type { RemotePlugin } from '../messages/protocol.ts';
import type { ModuleLimit } from '../shared/call-options.ts';
import { isPlainObject } from '../util/values.ts';
import { AT_RUN_TIME, UniqueNames } from './extension-options.ts';
import { HookRegistry } from './hook-table.ts';
import type { PluginKind } from './hooks-check.ts';
import { refuseProviders } from './injection.ts';
import { blueprintOf } from './plugin-blueprint.ts';
import { HostedPlugin, PluginHost } from './plugin-host.ts';
import type { PluginResolver } from './plugin-resolver.ts';

/** A plugin that is to be there. */
export interface LocalEntry extends UseEntry {
  /** Default: its own. */
  readonly name?: string;
  /** What happens when a hook throws. Default `log`. */
  readonly onError?: OnError;
}

/** A plugin in a list that a program gives: an entry, or the definition, class or instance itself. */
export type LocalPluginInput =
  | LocalEntry
  | WorkerPluginDefinition<never>
  | WorkerPlugin
  | NannyPluginDefinition<never>
  | NannyPlugin
  | (new (options: never) => object);

/** The entry of a plugin in a list; the thing itself stands for an entry without options. */
export function localEntry(input: LocalPluginInput): LocalEntry {
  return typeof input === 'object' && 'use' in input ? input : { use: input };
}

/** What the plugins of one worker or nanny live in. */
interface LocalPluginsParts<Context> {
  readonly kind: Exclude<PluginKind, 'plugin'>;
  readonly resolver: PluginResolver;
  /** Where the modules of those may be that clients add. Default: everywhere. */
  readonly modules?: ModuleLimit;
  readonly clock: Clock;
  readonly log: Logger;
  /** Adds what is special to the kind. */
  readonly context: (base: LocalPluginContext) => Context;
  /** A plugin whose `onError` is `crash` failed. */
  readonly onCrash: (error: YardmasterError) => void;
  /** Plugins have come or gone. */
  readonly onChange?: () => void;
}

/** What can be looked at. */
interface LocalPluginInfo {
  readonly name: string;
  readonly enabled: boolean;
  readonly errorCount: number;
}

/** The plugins of a worker or a nanny, in order. */
export class LocalPlugins<Context extends LocalPluginContext, Hooks extends object> {
  private hooks: HookCalls<Hooks>;
  private readonly plugins = new Map<string, HostedPlugin>();
  private readonly host: PluginHost<HostedPlugin>;
  private isClosed = false;

  constructor(private readonly parts: LocalPluginsParts<Context>) {
    const { kind, clock, log, context, onCrash, onChange } = parts;
    const hooks = new HookRegistry<Hooks>(clock, kind);
    hooks.onSlow = (message) => log.warn({}, message);
    this.hooks = hooks.compile();
    const report = (error: YardmasterError): void => {
      log.error({ err: error, code: error.code, ...error.data }, error.message);
    };
    this.host = new PluginHost<HostedPlugin>({
      clock,
      hooks,
      plugins: this.plugins,
      make: (blueprint) => new HostedPlugin(blueprint, { clock, log, hooks, report }),
      contextOf: (plugin) => context(plugin.baseContext()),
      changed: () => {
        this.hooks = hooks.compile();
        onChange?.();
      },
      report,
      crashed: (_plugin, error) => onCrash(error),
      checkOpen: () => this.checkOpen(),
    });
  }

  get infos(): readonly LocalPluginInfo[] {
    return [...this.plugins.values()].map(({ name, observer: { isDetached, errorCount } }) => {
      return { name, enabled: !isDetached, errorCount };
    });
  }

  /**
   * Sets up a plugin that a client has named. One of the same name is closed before.
   * @returns its name
   * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`, `ERR_PLUGIN_SETUP`, `ERR_CLOSED`, `ERR_MODULE_REFUSED`
   */
  add(entry: LocalEntry): Promise<string> {
    return this.host.change(() => this.setUp(entry, undefined, this.parts.modules));
  }

  /**
   * Sets up what a configuration lists, in order.
   * @param onFailure - gets what cannot be set up; without it, that is thrown
   * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG` when the configuration is wrong, also when it
   *   lists two of one name
   */
  async addConfigured(
    entries: readonly LocalPluginInput[],
    onFailure?: (error: unknown) => void,
  ): Promise<void> {
    const section = this.parts.kind === 'worker-plugin' ? 'plugins' : 'nannyPlugins';
    const unique = new UniqueNames(`${this.parts.kind.replace('-', ' ')}s`, IN_CODE);
    for (const [index, entry] of entries.map(localEntry).entries()) {
      try {
        await this.host.change(() =>
          this.setUp(entry, (name, source) => unique.add(name, source, ['worker', section, index])),
        );
      } catch (error) {
        if (isMisconfigured(error) || onFailure === undefined) throw error;
        onFailure(error);
      }
    }
  }

  /** Closes a plugin. Returns whether it was there. */
  remove(name: string): Promise<boolean> {
    return this.host.change(() => this.removeNow(name));
  }

  /** Closes all, the newest first. Never rejects. */
  async close(): Promise<void> {
    await this.host.settled();
    this.isClosed = true;
    await this.host.closeAll();
  }

  /** Whether any plugin has that hook. */
  has(hook: keyof Hooks): boolean {
    return this.hooks[hook].length > 0;
  }

  /** Calls a hook of all that have it. Never throws. */
  call<Hook extends keyof Hooks>(
    hook: Hook,
    ...args: Hooks[Hook] extends (...given: infer Args) => unknown ? Args : never
  ): void {
    for (const call of this.hooks[hook]) (call as (...given: typeof args) => void)(...args);
  }

  private async setUp(
    { use, options, onError = 'log', name }: LocalEntry,
    checkName?: (name: string, source: string) => void,
    modules?: ModuleLimit,
  ): Promise<string> {
    const { resolver, kind } = this.parts;
    const resolved = await resolver.resolve(use, kind, undefined, modules);
    const given = options === undefined ? {} : { options };
    const found = blueprintOf(resolved, { kind, onError, place: AT_RUN_TIME, ...given });
    const blueprint = { ...found, name: name ?? found.name };
    if (checkName === undefined || kind === 'nanny-plugin') refuseProviders(blueprint, this.owner);
    checkName?.(blueprint.name, blueprint.source);
    await this.removeNow(blueprint.name);
    await this.host.add(blueprint);
    return blueprint.name;
  }

  private async removeNow(name: string): Promise<boolean> {
    const plugin = this.plugins.get(name);
    if (plugin !== undefined) await this.host.remove(plugin);
    return plugin !== undefined;
  }

  private checkOpen(): void {
    if (this.isClosed) throw new YardmasterError('ERR_CLOSED', `this ${this.owner} closes`);
  }

  private get owner(): string {
    return this.parts.kind === 'worker-plugin' ? 'worker' : 'nanny';
  }
}

/** Whether the configuration is wrong, and not only the setup of the plugin. */
function isMisconfigured(error: unknown): boolean {
  return [error, error instanceof Error ? error.cause : undefined].some(
    (one) => YardmasterError.is(one, 'ERR_PLUGIN_LOAD') || YardmasterError.is(one, 'ERR_CONFIG'),
  );
}

/** What sets plugins up and tears them down. */
interface PluginSet {
  add(entry: LocalEntry): Promise<unknown>;
  /** Returns whether it was there. */
  remove(name: string): Promise<boolean>;
}

/** The plugins of one worker, or of its nanny, that clients have registered with the scheduler. */
export class RemotePlugins {
  /** Names of those that the scheduler wants here. */
  private names = new Set<string>();

  /**
   * @param onFailure - called with a plugin that the scheduler wants and that could not be loaded
   */
  constructor(
    private readonly plugins: PluginSet,
    private readonly onFailure: (error: unknown) => void,
  ) {}

  /** Adds and removes plugins until there are those that the scheduler wants. Never rejects. */
  async agree(wanted: readonly RemotePlugin[]): Promise<void> {
    const names = new Set(wanted.map(({ name }) => name));
    for (const name of this.names) {
      if (!names.has(name)) await this.attempt(() => this.plugins.remove(name));
    }
    for (const plugin of wanted) {
      if (!this.names.has(plugin.name)) await this.attempt(() => this.plugins.add(plugin));
    }
    this.names = names;
  }

  /**
   * Adds or removes one plugin, as the scheduler asks.
   * @throws YardmasterError as the plugin set does, `ERR_PROTOCOL`
   */
  async answer({ action, plugin }: WireMessage): Promise<WireMessage> {
    const { name, use, options } = plugin as RemotePlugin;
    if (action === 'remove') {
      this.names.delete(name);
      return { name, wasThere: await this.plugins.remove(name) };
    }
    if (action !== 'add' || (options !== undefined && !isPlainObject(options))) {
      throw new YardmasterError('ERR_PROTOCOL', `a plugin cannot be ${String(action)}ed`);
    }
    await this.plugins.add({ name, use, options });
    this.names.add(name);
    return { name };
  }

  private async attempt(change: () => Promise<unknown>): Promise<void> {
    try {
      await change();
    } catch (error) {
      this.onFailure(error);
    }
  }
}
