import type {
  ExtensionLoader,
  LoadedExtension,
  UseEntry,
  WantedExtensions,
} from '../api/plugin.ts';
import { pathText, show } from '../config/errors.ts';
import { construct } from './construct.ts';
import { insteadText } from './extension-kinds.ts';
import { checkOptions, type Place } from './extension-options.ts';
import type { PluginResolver } from './plugin-resolver.ts';
import { ProblemList } from './problem-list.ts';

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
  return {
    exported,
    options,
    source: shown,
    create: () =>
      typeof exported === 'function' ? construct(exported as never, options, shown) : exported,
    insteadOf: (wanted) => insteadText(exported, wanted),
  };
}

/**
 * Loads what the options of one plugin name.
 * @param place - of these options
 * @param lines - gets a line for each extension, for people
 */
export function extensionLoader(
  resolver: PluginResolver,
  place: Place,
  lines: string[],
): ExtensionLoader {
  return {
    loadAll: async <T>({ entries, at, ...wanted }: WantedExtensions<T>): Promise<T[]> => {
      const problems = new ProblemList(place.origin);
      const made: T[] = [];
      for (const [index, entry] of entries.entries()) {
        const inner = [...at, index];
        const optionsAt = [...place.optionsAt, ...inner];
        await problems.attempt(optionsAt, async () => {
          const loaded = await loadExtension(resolver, entry, {
            ...place,
            optionsAt: [...optionsAt, 'options'],
          });
          const { source, options } = loaded;
          const shown = Object.keys(options).length === 0 ? '' : ` ${show(options)}`;
          lines.push(`${pathText(inner)}: ${source}${shown}`);
          made.push(wanted.make(loaded));
        });
      }
      problems.throwIfAny();
      return made;
    },
  };
}
