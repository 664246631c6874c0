import type { Channel } from '../api/channel.ts';
import { messageOf, YardmasterError } from '../api/errors.ts';
import type { WireMessage } from '../api/transport.ts';
import type { RemotePlugin } from '../messages/protocol.ts';
import { collaborator } from '../plugin-host/injection.ts';
import { ClusterState } from '../state/cluster.ts';
import { InTurn } from '../util/steps.ts';
import { countOf } from '../util/values.ts';
import { builtin, type BuiltinCommand, type Given } from './commands.ts';
import { Sessions } from './sessions.ts';

/** A worker sets plugins up within ten seconds each, one after the other. */
const ANSWER_TIMEOUT_MS = 30_000;

/** The place of the plugins: in workers, or in the nannies of workers. */
type RemotePluginKind = 'worker' | 'nanny';

/** The reason why a plugin is not on one worker. */
interface Refusal {
  readonly worker: string;
  readonly error: string;
}

/** The plugins that clients have registered for all workers or nannies, those that come later included. */
export abstract class RemotePluginRegistry {
  readonly commands: readonly BuiltinCommand[];
  private readonly wanted = new Map<string, RemotePlugin>();
  private readonly changes = new InTurn();

  protected constructor(
    private readonly kind: RemotePluginKind,
    private readonly sessions: Sessions,
    private readonly cluster: ClusterState,
  ) {
    this.commands = [
      builtin(`register-${kind}-plugin`, (given) => this.changes.run(() => this.register(given))),
      builtin(`unregister-${kind}-plugin`, (given) =>
        this.changes.run(() => this.unregister(given)),
      ),
      builtin(`${kind}-plugins`, () => this.all),
    ];
  }

  /** The plugins that a registering worker receives. */
  get all(): readonly RemotePlugin[] {
    return [...this.wanted.values()];
  }

  /** On all workers, or on none. */
  private async register({
    idempotent,
    ...plugin
  }: Given<'register-worker-plugin'>): Promise<unknown> {
    const { kind } = this;
    const { name } = plugin;
    if (this.wanted.has(name) && idempotent === true) return { name, workers: [] };
    // In one step with the choice of the workers to ask: a worker that registers later gets it then.
    this.wanted.set(name, plugin);
    const { reached, refusals } = await this.ask('add', plugin);
    if (refusals.length === 0) return { name, workers: reached };
    this.wanted.delete(name);
    await this.ask('remove', plugin);
    const [first] = refusals as [Refusal];
    throw new YardmasterError(
      'ERR_PLUGIN_SETUP',
      `the ${kind} plugin "${name}" is not there: ${refusals.length} of ${countOf(reached.length + refusals.length, 'worker')} refused it, ${first.worker} because ${first.error}`,
      { plugin: name, refusals },
    );
  }

  private async unregister({ name }: Given<'unregister-worker-plugin'>): Promise<unknown> {
    const plugin = this.wanted.get(name);
    if (plugin === undefined) {
      throw new YardmasterError(
        'ERR_PLUGIN_SETUP',
        `no ${this.kind} plugin "${name}" was registered; there are ${[...this.wanted.keys()].join(', ') || 'none'}`,
        { plugin: name },
      );
    }
    this.wanted.delete(plugin.name);
    const { reached } = await this.ask('remove', plugin);
    return { name: plugin.name, workers: reached };
  }

  /** Connected workers that can have such plugins. Workers of other languages have plugins of their own. */
  private workers(): readonly (readonly [address: string, channel: Channel])[] {
    return [...this.sessions.workers].flatMap(([address, { channel }]) => {
      const worker = this.cluster.workers.get(address);
      if (worker?.language !== 'javascript') return [];
      if (this.kind === 'nanny' && worker.identity.nanny === undefined) return [];
      return [[address, channel] as const];
    });
  }

  private async ask(
    action: 'add' | 'remove',
    plugin: RemotePlugin,
  ): Promise<{ readonly reached: readonly string[]; readonly refusals: readonly Refusal[] }> {
    const reached: string[] = [];
    const refusals: Refusal[] = [];
    const parameters = { action, plugin: { ...plugin } } as WireMessage;
    await Promise.all(
      this.workers().map(async ([worker, channel]) => {
        try {
          await channel.request(`${this.kind}-plugin`, parameters, ANSWER_TIMEOUT_MS);
          reached.push(worker);
        } catch (error) {
          // One that has gone meanwhile is none that refuses.
          if (channel.isClosed) return;
          refusals.push({ worker, error: messageOf(error) });
        }
      }),
    );
    return { reached, refusals };
  }
}

/** The plugins that clients have registered for all workers. */
@collaborator
export class WorkerPluginRegistry extends RemotePluginRegistry {
  constructor(sessions: Sessions, cluster: ClusterState) {
    super('worker', sessions, cluster);
  }
}

/** The plugins that clients have registered for the nannies of all workers. */
@collaborator
export class NannyPluginRegistry extends RemotePluginRegistry {
  constructor(sessions: Sessions, cluster: ClusterState) {
    super('nanny', sessions, cluster);
  }
}
