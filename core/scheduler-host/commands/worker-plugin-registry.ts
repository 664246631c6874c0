import type { Channel } from '../../api/channel.ts';
import { YardmasterError } from '../../api/errors.ts';
import type { CommandHandler } from '../../api/plugin.ts';
import type { WireMessage } from '../../api/transport.ts';
import { isPlainObject } from '../../config/prepare.ts';
import type { RemotePlugin } from '../../messages/protocol.ts';

/** A worker sets plugins up within ten seconds each, one after the other. */
const ANSWER_TIMEOUT_MS = 30_000;

/** Where the plugins live: in workers, or in the nannies of workers. */
export type RemotePluginKind = 'worker' | 'nanny';

/** Whom the desk speaks to. */
export interface WorkerPluginRegistryScope {
  readonly kind: RemotePluginKind;
  /** Connected workers that can have such plugins: address and connection. */
  workers(): readonly (readonly [address: string, channel: Channel])[];
}

/** Why a plugin is not there on one worker. */
interface Refusal {
  readonly worker: string;
  readonly error: string;
}

/** The plugins that clients have registered for all workers or nannies, those that come later included. */
export class WorkerPluginRegistry {
  readonly commands: ReadonlyMap<string, CommandHandler>;
  private readonly wanted = new Map<string, RemotePlugin>();
  /** Changes happen one after the other. */
  private changes: Promise<unknown> = Promise.resolve();

  constructor(private readonly scope: WorkerPluginRegistryScope) {
    this.commands = new Map<string, CommandHandler>([
      [`register-${scope.kind}-plugin`, (given) => this.change(() => this.register(given))],
      [`unregister-${scope.kind}-plugin`, (given) => this.change(() => this.unregister(given))],
      [`${scope.kind}-plugins`, () => this.all],
    ]);
  }

  /** What a worker that registers is told. */
  get all(): readonly RemotePlugin[] {
    return [...this.wanted.values()];
  }

  private change<T>(run: () => Promise<T>): Promise<T> {
    const result = this.changes.then(run);
    this.changes = result.catch(() => undefined); // Whoever asked for the change is told.
    return result;
  }

  /** On all workers, or on none. */
  private async register(given: unknown): Promise<unknown> {
    const { kind } = this.scope;
    const { plugin, idempotent } = pluginIn(kind, given);
    const { name } = plugin;
    const replaced = this.wanted.get(name);
    if (replaced !== undefined && idempotent) return { name, workers: [] };
    // In one step with the choice of those who are asked: who registers later is told as it does.
    this.wanted.set(name, plugin);
    const { reached, refusals } = await this.ask('add', plugin);
    if (refusals.length === 0) return { name, workers: reached };
    this.wanted.delete(name);
    await this.ask('remove', plugin);
    const [first] = refusals as [Refusal];
    throw new YardmasterError(
      'ERR_PLUGIN_SETUP',
      `the ${kind} plugin "${name}" is not there: ${refusals.length} of ${reached.length + refusals.length} workers refused it, ${first.worker} because ${first.error}`,
      { plugin: name, refusals },
    );
  }

  private async unregister(given: unknown): Promise<unknown> {
    const { name } = (isPlainObject(given) ? given : {}) as { readonly name?: unknown };
    const plugin = typeof name === 'string' ? this.wanted.get(name) : undefined;
    if (plugin === undefined) {
      throw new YardmasterError(
        'ERR_PLUGIN_SETUP',
        `no ${this.scope.kind} plugin "${String(name)}" was registered; there are ${[...this.wanted.keys()].join(', ') || 'none'}`,
        { plugin: name },
      );
    }
    this.wanted.delete(plugin.name);
    const { reached } = await this.ask('remove', plugin);
    return { name: plugin.name, workers: reached };
  }

  private async ask(
    action: 'add' | 'remove',
    plugin: RemotePlugin,
  ): Promise<{ readonly reached: readonly string[]; readonly refusals: readonly Refusal[] }> {
    const reached: string[] = [];
    const refusals: Refusal[] = [];
    const parameters = { action, plugin: { ...plugin } } as WireMessage;
    await Promise.all(
      this.scope.workers().map(async ([worker, channel]) => {
        try {
          await channel.request(`${this.scope.kind}-plugin`, parameters, ANSWER_TIMEOUT_MS);
          reached.push(worker);
        } catch (error) {
          // One that has gone meanwhile is none that refuses.
          if (channel.isClosed) return;
          refusals.push({ worker, error: error instanceof Error ? error.message : String(error) });
        }
      }),
    );
    return { reached, refusals };
  }
}

function pluginIn(
  kind: RemotePluginKind,
  given: unknown,
): { readonly plugin: RemotePlugin; readonly idempotent: boolean } {
  const { name, use, options, idempotent } = isPlainObject(given) ? given : {};
  const isNamed = typeof name === 'string' && name !== '' && typeof use === 'string' && use !== '';
  if (!isNamed || (options !== undefined && !isPlainObject(options))) {
    throw new YardmasterError(
      'ERR_PROTOCOL',
      `the command "register-${kind}-plugin" takes { name, use, options } with two strings and an object`,
      { command: `register-${kind}-plugin` },
    );
  }
  const plugin = { name, use, ...(options === undefined ? {} : { options }) };
  return { plugin, idempotent: idempotent === true };
}
