import type { LoadedExtension, UseEntry } from '../api/plugin.ts';
import { checkOptions, type Place } from './extension-options.ts';
import type { PluginResolver } from './plugin-resolver.ts';

/**
 * Loads what an entry names, whatever it is, and checks its options against its `optionsSchema`.
 * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`
 */
export async function loadExtension(
  resolver: PluginResolver,
  entry: UseEntry,
  place: Place,
): Promise<LoadedExtension> {
  const { exported, source } = await resolver.resolve(entry.use, 'extension');
  const { name, optionsSchema } = (exported ?? {}) as { name?: unknown; optionsSchema?: object };
  const shown = typeof name === 'string' && name !== '' ? `${name} from ${source}` : source;
  const options = checkOptions(optionsSchema, entry.options, place, shown);
  return { exported, options, source: shown };
}
