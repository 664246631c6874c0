import { YardmasterError } from '../api/errors.ts';
import type { WireMessage } from '../api/transport.ts';
import { isPlainObject } from '../util/plain-object.ts';
import type { RemotePlugin } from '../messages/protocol.ts';
import type { LocalEntry } from './local-plugins.ts';

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
    await this.plugins.add({ name, use, ...(options === undefined ? {} : { options }) });
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
