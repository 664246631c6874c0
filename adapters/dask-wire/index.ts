import { definePlugin, PLUGIN_API_VERSION } from '../../core/api/index.ts';
import { Front } from './front.ts';
import { EXTENSIONS } from './extensions/index.ts';
import { pythonCommands } from './graph/index.ts';
import { RPC } from './rpc/index.ts';

/** Options of the plugin `dask`. */
export interface DaskOptions {
  /** Where Dask's workers, nannies and clients reach the scheduler. Port 0 chooses a free one. */
  readonly address: string;
  /**
   * The Python that reads graphs; it needs the packages that clients use. Default: one that is found
   * and has the version of the clients.
   */
  readonly python?: string;
  /** Milliseconds that reading one graph may take. */
  readonly pythonTimeoutMs: number;
  /** Port of the page that clients link to as the dashboard; any when it is taken or 0, none when -1. */
  readonly statusPort: number;
}

/**
 * Dask's own clients, workers and nannies, unmodified, with this scheduler in the place of theirs. The
 * command `dask.address` tells where it listens.
 */
export default definePlugin<DaskOptions>({
  name: 'dask',
  apiVersion: PLUGIN_API_VERSION,
  optionsSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      address: { type: 'string', default: 'tcp://127.0.0.1:8786' },
      python: { type: 'string' },
      pythonTimeoutMs: { type: 'number', minimum: 1000, default: 600_000 },
      statusPort: { type: 'integer', minimum: -1, maximum: 65_535, default: 8787 },
    },
  },
  setup(plugin, options) {
    const front = new Front({
      plugin,
      listenAddress: options.address,
      pythons: pythonCommands(options.python),
      pythonTimeoutMs: options.pythonTimeoutMs,
      statusPort: options.statusPort,
      rpc: RPC,
      extensions: EXTENSIONS,
    });
    plugin.command('address', () => front.address);
    return {
      ...front.hooks,
      start: async () => {
        const address = await front.listen();
        plugin.log.info({ address }, 'listening for Dask');
      },
      graphUpdated: ({ tasks }) => front.tasksAdded(tasks),
      restarted: () => front.restarted(),
      beforeClose: () => front.sayGoodbye(),
      close: () => front.close(),
    };
  },
});
