import { type Logger, token, type Token } from '../../api/plugin.ts';
import type { Clock } from '../../api/clock.ts';
import { configError } from '../../config/errors.ts';
import type { LoadedConfig } from '../../config/load.ts';
import type { TransportTable } from '../../host/transport-table.ts';
import {
  CONFIGURED_EXTENSIONS,
  type ConfiguredExtensions,
} from '../plugins/configured-extensions.ts';
import { inject } from '../../plugin-host/injection/di.ts';
import { CLOCK, LOADED_CONFIG, LOGGER } from '../../plugin-host/injection/tokens.ts';
import { type PluginResolver, RESOLVER } from '../../plugin-host/loading/plugin-resolver.ts';
import { Preloads } from '../../plugin-host/loading/preloads.ts';
import { ProblemList } from '../../plugin-host/loading/problem-list.ts';
import { TRANSPORTS } from '../tokens.ts';

export const LOADING: Token<Loading> = token('loading');

/** Loads and checks everything that the configuration names, before the kernel exists. */
export class Loading {
  private preloads: Preloads | undefined;

  constructor(
    @inject(LOADED_CONFIG) private readonly loaded: LoadedConfig,
    @inject(RESOLVER) private readonly resolver: PluginResolver,
    @inject(CONFIGURED_EXTENSIONS) private readonly extensions: ConfiguredExtensions,
    @inject(TRANSPORTS) private readonly transports: TransportTable,
    @inject(CLOCK) private readonly clock: Clock,
    @inject(LOGGER) private readonly log: Logger,
  ) {}

  /**
   * Loads what is configured; nothing of it runs.
   * @throws YardmasterError with every problem
   */
  async load(): Promise<void> {
    const { resolver, clock, log } = this;
    const { origin, config } = this.loaded;
    const problems = new ProblemList(origin);
    const { transport, preload } = config.scheduler;
    if (transport !== undefined) {
      const at = ['scheduler', 'transport'];
      const place = { origin, optionsAt: [...at, 'options'] };
      await problems.attempt(at, () => this.transports.addConfigured(transport, resolver, place));
    }
    await problems.attempt(undefined, async () => {
      const place = { origin, at: ['scheduler', 'preload'] };
      const context = { role: 'scheduler', clock, log } as const;
      this.preloads = await Preloads.load(preload, resolver, context, place);
    });
    await problems.attempt(undefined, () => this.extensions.load());
    problems.throwIfAny();
  }

  /** @throws YardmasterError `ERR_CONFIG` when nothing speaks the scheme of the configured address */
  async checkAddress(): Promise<void> {
    const { config, origin } = this.loaded;
    try {
      await this.transports.for(config.scheduler.address);
    } catch (error) {
      const message = `cannot be used: ${(error as Error).message}`;
      throw configError([{ at: ['scheduler', 'address'], message }], origin);
    }
  }

  /** Runs the preloads, and logs what was configured and has no effect. */
  async setUp(): Promise<void> {
    await this.preloads?.setUp();
    for (const note of this.loaded.notes) this.log.warn({}, note);
  }

  /** Never rejects. */
  async close(): Promise<void> {
    await this.preloads?.close();
  }

  /** Plugins with their sources, phases, hooks and slots, as a tree for people. */
  report(): string {
    const notes = this.loaded.notes.map((note) => `  ${note}`);
    return [this.extensions.report(), ...(notes.length === 0 ? [] : ['but', ...notes])].join('\n');
  }
}
