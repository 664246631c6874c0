import { YardmasterError } from '../../api/errors.ts';
import type {
  ExtensionLoader,
  LoadedExtension,
  UseEntry,
  WantedExtensions,
} from '../../api/plugin.ts';
import { pathText } from '../../config/errors.ts';
import { show } from '../../shared/words.ts';
import { construct } from '../injection/construct.ts';
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
  const owner = typeof exported === 'function' ? 'class' : 'definition';
  const options = checkOptions(optionsSchema, entry.options, place, shown, owner);
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
    loadAll: async <T>({
      entries,
      at,
      known = [],
      ...wanted
    }: WantedExtensions<T>): Promise<T[]> => {
      const problems = new ProblemList(place.origin);
      const made: T[] = [];
      for (const [index, entry] of entries.entries()) {
        const inner = [...at, index];
        const optionsAt = [...place.optionsAt, ...inner];
        await problems.attempt(optionsAt, async () => {
          const inside = { ...place, optionsAt: [...optionsAt, 'options'] };
          const loaded = await loadExtension(resolver, entry, inside).catch((error: unknown) => {
            throw withKnownNames(error, entry.use, known);
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

/** A name of a class of Python, as `my_package.MyPolicy`. */
const PYTHON_CLASS = /^[a-z_]\w*(\.[a-z_]\w*)*\.(?<name>[A-Z]\w*)$/;

/** For those who bring a configuration of Dask. */
function withKnownNames(error: unknown, use: unknown, known: readonly string[]): unknown {
  const name = typeof use === 'string' ? PYTHON_CLASS.exec(use)?.groups?.['name'] : undefined;
  if (name === undefined || !YardmasterError.is(error, 'ERR_PLUGIN_LOAD')) return error;
  const instead = known.length === 0 ? '' : `use a built-in one (${known.join(', ')}), or `;
  const advice = `a class of Python cannot run here: ${instead}write it in JavaScript and name it as ./file.js#${name}`;
  const message = `${error.message}; ${advice}`;
  return new YardmasterError(error.code, message, error.data, { cause: error });
}
