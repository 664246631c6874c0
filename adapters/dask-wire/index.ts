import { definePlugin, PLUGIN_API_VERSION } from '../../core/api/index.ts';
import { languageOf } from './border/language.ts';
import { Front } from './front.ts';
import { EXTENSIONS } from './extensions/index.ts';
import { isNamed, pythonCommands } from './graph/index.ts';
import { withTls } from './open-socket.ts';
import { RPC } from './rpc/index.ts';
import { credentialsFor, type TlsFiles } from './tls-config.ts';

/** Where Dask's schedulers show their dashboard. */
const STATUS_PORT = 8787;

/** Options of the plugin `dask`. */
export interface DaskOptions {
  /** Where Dask's workers, nannies and clients reach the scheduler. Port 0 chooses a free one. */
  readonly address: string;
  /**
   * The Python that reads graphs; it needs the packages that clients use. It starts with the scheduler.
   * Default: one that is found and has the version of the clients, started for the first of them.
   */
  readonly python?: string;
  /** Milliseconds that reading one graph may take. */
  readonly pythonTimeoutMs: number;
  /**
   * Port of the page that clients link to as the dashboard; any when it is taken or 0, none when -1.
   * Default: 8787, and -1 with a `tls://` address. When it is named there, the page is encrypted as well
   * and wants the certificate of its reader.
   */
  readonly statusPort?: number;
  /**
   * Certificates for `tls://` addresses, as file names. Default: those of Dask's own configuration
   * (`distributed.comm.tls`), from its files and the environment.
   */
  readonly tls?: TlsFiles;
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
      statusPort: { type: 'integer', minimum: -1, maximum: 65_535 },
      tls: {
        type: 'object',
        additionalProperties: false,
        properties: {
          caFile: { type: 'string' },
          cert: { type: 'string' },
          key: { type: 'string' },
          ciphers: { type: 'string' },
          minVersion: { type: 'string', enum: ['1.2', '1.3'] },
          maxVersion: { type: 'string', enum: ['1.2', '1.3'] },
        },
      },
    },
  },
  setup(plugin, options) {
    const tls = credentialsFor(options.address, options.tls, process.env);
    const front = new Front({
      plugin,
      ...withTls(tls),
      listenAddress: options.address,
      pythons: pythonCommands(options.python),
      // One that is to be found is chosen by the version of the first client.
      startsPython: isNamed(options.python),
      pythonTimeoutMs: options.pythonTimeoutMs,
      statusPort: options.statusPort ?? (tls === undefined ? STATUS_PORT : -1),
      rpc: RPC,
      extensions: EXTENSIONS,
    });
    plugin.command('address', () => front.address);
    plugin.tellLanguages(languageOf);
    return {
      ...front.operations.hooks,
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
