import type { Clock } from '../api/clock.ts';
import { messageOf } from '../api/errors.ts';
import type { WorkerHooks, WorkerPluginContext } from '../api/local-plugins.ts';
import { type Logger } from '../api/plugin.ts';
import type { WireMessage } from '../api/transport.ts';
import type { RemotePlugin } from '../messages/protocol.ts';
import type { WorkerIdentity } from '../state/worker.ts';
import { type LocalPluginInput, LocalPlugins, RemotePlugins } from '../plugin-host/plugin-host.ts';
import { resolverIn } from '../plugin-host/module-files.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { CLOCK, LOGGER } from '../host/tokens.ts';
import { checkTopics } from '../shared/schema.ts';
import { resultsOf } from '../worker/on-scheduler.ts';
import { WorkerKernel } from '../worker/worker-kernel.ts';
import { WORKER_IDENTITY, WORKER_OPTIONS } from './tokens.ts';
import { WorkerEnding } from './worker-ending.ts';
import { WorkerLink } from './worker-link.ts';
import type { WorkerHostOptions } from './worker-options.ts';

/** The plugins of one worker: those of its configuration, and those that clients have registered. */
@collaborator
export class WorkerPlugins {
  private readonly plugins: LocalPlugins<WorkerPluginContext, WorkerHooks>;
  private readonly remote: RemotePlugins;

  constructor(
    @inject(WORKER_OPTIONS) { folder = process.cwd(), modules }: WorkerHostOptions,
    @inject(WORKER_IDENTITY) worker: WorkerIdentity,
    private readonly kernel: WorkerKernel,
    link: WorkerLink,
    ending: WorkerEnding,
    @inject(CLOCK) clock: Clock,
    @inject(LOGGER) private readonly log: Logger,
  ) {
    const results = (): readonly string[] => resultsOf(kernel.tables);
    const logEvent = (topics: readonly string[], message: unknown): void => {
      checkTopics(topics, message);
      link.report({ op: 'log-event', topics, message });
    };
    this.plugins = new LocalPlugins({
      kind: 'worker-plugin',
      resolver: resolverIn(folder),
      modules,
      clock,
      log,
      context: (base) => ({ ...base, worker, results, logEvent }),
      onCrash: (error) => ending.giveUp(error),
      onChange: () => this.onChange(),
    });
    this.remote = new RemotePlugins(this.plugins, (error) => this.logFailure(error));
  }

  /**
   * Sets up what is configured. A setup that fails is logged: a worker without it is better than none.
   * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG` when the configuration is wrong
   */
  start(entries: readonly LocalPluginInput[]): Promise<void> {
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
    const { plugins, kernel } = this;
    const observer: WorkerHooks['taskTransition'] = (...args) =>
      plugins.call('taskTransition', ...args);
    kernel.observer = plugins.has('taskTransition') ? observer : undefined;
  }

  private logFailure(error: unknown): void {
    this.log.error({ err: error }, `a plugin of this worker is not there: ${messageOf(error)}`);
  }
}
