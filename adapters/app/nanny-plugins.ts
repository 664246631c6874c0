import { inBackground } from '../../core/shared/background.ts';
import type {
  Clock,
  Logger,
  NannyHooks,
  NannyPluginContext,
  UseEntry,
} from '../../core/api/index.ts';
import { type LocalEntry, LocalPlugins } from '../../core/plugin-host/local-plugins.ts';
import { PluginResolver } from '../../core/plugin-host/loading/plugin-resolver.ts';
import { Preloads } from '../../core/plugin-host/loading/preloads.ts';
import type { ModuleLimit } from '../../core/shared/module-limit.ts';
import { RemotePlugins } from '../../core/plugin-host/remote-plugins.ts';

/** What a nanny is given by its configuration. */
interface NannyPluginsOptions {
  /** Of the worker. */
  readonly name: string;
  readonly plugins: readonly LocalEntry[];
  readonly preload: readonly UseEntry[];
  /** What their paths are relative to. */
  readonly folder: string;
  /** Where the modules of those may be that clients register. Default: everywhere. */
  readonly modules?: ModuleLimit | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The nanny, as its plugins see it. */
interface NannyOfPlugins {
  restart(): void;
  close(): Promise<void>;
}

/** The plugins of one nanny. */
export class NannyPlugins {
  /** For the nanny to call. */
  readonly hooks: NannyHooks;
  /** Those that clients register with the scheduler. */
  readonly remote: RemotePlugins;
  private nanny: NannyOfPlugins | undefined;

  private constructor(
    private readonly plugins: LocalPlugins<NannyPluginContext, NannyHooks>,
    private readonly preloads: Preloads,
    log: Logger,
  ) {
    this.remote = new RemotePlugins(plugins, (error) => {
      const why = error instanceof Error ? error.message : String(error);
      log.error({ err: error }, `a plugin of this nanny is not there: ${why}`);
    });
    this.hooks = {
      processStarting: (environment) => plugins.call('processStarting', environment),
      processRegistered: (address) => plugins.call('processRegistered', address),
      processEnded: (ending) => plugins.call('processEnded', ending),
    };
  }

  /**
   * Loads modules and sets plugins up, before the nanny is there.
   * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`, `ERR_PLUGIN_SETUP`; then nothing is left
   */
  static async start(options: NannyPluginsOptions): Promise<NannyPlugins> {
    const { name: worker, folder, clock, log } = options;
    const resolver = new PluginResolver({}, folder);
    const preloads = await Preloads.load(options.preload, resolver, { role: 'nanny', clock, log });
    const made: { self?: NannyPlugins } = {};
    const plugins = new LocalPlugins<NannyPluginContext, NannyHooks>({
      kind: 'nanny-plugin',
      resolver,
      modules: options.modules,
      clock,
      log,
      context: (base) => ({ ...base, worker, restart: () => made.self?.nanny?.restart() }),
      onCrash: () => {
        inBackground(made.self?.nanny?.close() ?? Promise.resolve(), (error) => {
          log.error({ err: error }, 'the nanny could not close its worker');
        });
      },
    });
    const self = new NannyPlugins(plugins, preloads, log);
    made.self = self;
    await preloads.setUp();
    try {
      await plugins.addConfigured(options.plugins);
      return self;
    } catch (error) {
      await self.close();
      throw error;
    }
  }

  /** The nanny is there. */
  serve(nanny: NannyOfPlugins): void {
    this.nanny = nanny;
  }

  /** Tears everything down. Never rejects. */
  async close(): Promise<void> {
    await this.plugins.close();
    await this.preloads.close();
  }
}
