import type { Clock } from '../api/clock.ts';
import type { YardmasterError } from '../api/errors.ts';
import type { WorkerHooks, WorkerPluginContext } from '../api/local-plugins.ts';
import type { Logger } from '../api/plugin.ts';
import type { WireMessage } from '../api/transport.ts';
import type { RemotePlugin } from '../messages/protocol.ts';
import type { WorkerIdentity } from '../state/worker.ts';
import { type LocalEntry, LocalPlugins } from '../plugin-host/local-plugins.ts';
import { PluginResolver } from '../plugin-host/loading/plugin-resolver.ts';
import { RemotePlugins } from '../plugin-host/remote-plugins.ts';

/** What the plugins of a worker see of it. */
export interface WorkerPluginsParts {
  readonly identity: WorkerIdentity;
  readonly clock: Clock;
  readonly log: Logger;
  /** What relative `use` paths are relative to. */
  readonly folder: string;
  readonly results: () => readonly string[];
  readonly logEvent: (topics: readonly string[], message: unknown) => void;
  /** Undefined while no plugin wants to know of transitions. */
  readonly observe: (observer: WorkerHooks['taskTransition'] | undefined) => void;
  readonly onCrash: (error: YardmasterError) => void;
}

/** The plugins of one worker: those of its configuration, and those that clients have registered. */
export class WorkerPlugins {
  private readonly plugins: LocalPlugins<WorkerPluginContext, WorkerHooks>;
  private readonly remote: RemotePlugins;

  constructor(private readonly parts: WorkerPluginsParts) {
    const { clock, log, folder, onCrash, identity, results, logEvent } = parts;
    this.plugins = new LocalPlugins({
      kind: 'worker-plugin',
      resolver: new PluginResolver({}, folder),
      clock,
      log,
      context: (base) => ({ ...base, worker: identity, results, logEvent }),
      onCrash,
      onChange: () => this.onChange(),
    });
    this.remote = new RemotePlugins(this.plugins, (error) => this.logFailure(error));
  }

  /**
   * Sets up what is configured. A setup that fails is logged: a worker without it is better than none.
   * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG` when the configuration is wrong
   */
  start(entries: readonly LocalEntry[]): Promise<void> {
    return this.plugins.addConfigured(entries, (error) => this.logFailure(error));
  }

  /** See {@link RemotePlugins.agree}. */
  agree(wanted: readonly RemotePlugin[]): Promise<void> {
    return this.remote.agree(wanted);
  }

  /** See {@link RemotePlugins.answer}. */
  answer(message: WireMessage): Promise<WireMessage> {
    return this.remote.answer(message);
  }

  /** See {@link LocalPlugins.call}. */
  get call(): LocalPlugins<WorkerPluginContext, WorkerHooks>['call'] {
    return this.plugins.call.bind(this.plugins);
  }

  describe(): readonly object[] {
    return this.plugins.infos;
  }

  close(): Promise<void> {
    return this.plugins.close();
  }

  private onChange(): void {
    const { plugins, parts } = this;
    const observer: WorkerHooks['taskTransition'] = (...args) =>
      plugins.call('taskTransition', ...args);
    parts.observe(plugins.has('taskTransition') ? observer : undefined);
  }

  private logFailure(error: unknown): void {
    const why = error instanceof Error ? error.message : String(error);
    this.parts.log.error({ err: error }, `a plugin of this worker is not there: ${why}`);
  }
}
