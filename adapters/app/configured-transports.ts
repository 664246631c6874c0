import type { Transport } from '../../core/api/index.ts';
import { IN_CODE } from '../../core/config/errors.ts';
import { loadConfigFile } from '../../core/config/load.ts';
import { PluginResolver } from '../../core/plugin-host/loading/plugin-resolver.ts';
import { loadTransport } from '../../core/host/transport-table.ts';
import { builtins } from './builtin-extensions.ts';
import { SystemClock } from '../clocks/index.ts';
import type { WorkerSettings } from './worker-settings.ts';

/**
 * The transport that `scheduler.transport` of a worker's configuration names, if it names one.
 * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`
 */
export async function configuredTransports({
  transport,
  folder,
}: WorkerSettings): Promise<readonly Transport[]> {
  if (transport === undefined) return [];
  const place = { origin: IN_CODE, optionsAt: ['scheduler', 'transport', 'options'] };
  const resolver = new PluginResolver(builtins, folder);
  return [await loadTransport(transport, resolver, place, new SystemClock())];
}

/**
 * The transport that a configuration file names, for peers that need nothing else of it.
 * @param file - undefined: none
 * @throws YardmasterError `ERR_CONFIG`, `ERR_PLUGIN_LOAD`
 */
export async function transportsOfFile(file: string | undefined): Promise<readonly Transport[]> {
  if (file === undefined) return [];
  const { config, folder } = await loadConfigFile(file);
  return configuredTransports({ worker: {}, folder, transport: config.scheduler.transport });
}
