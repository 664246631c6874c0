import { type ErrorCode, YardmasterError } from '../api/errors.ts';
import { complaintAbout, methodNamesOf, namesOf, type PluginKind } from './hook-names.ts';

/**
 * Refuses hooks that would silently never be called: misspelt ones, those of other kinds of
 * plugins, and those under Dask's names. An object of hooks may have nothing else; a class may have
 * further methods.
 *
 * @param code - `ERR_PLUGIN_LOAD` before the plugin is set up, `ERR_PLUGIN_SETUP` for what `setup`
 *   returned
 * @throws YardmasterError of that code
 */
export function checkHookNames(
  plugin: string,
  instance: object,
  kind: PluginKind,
  code: Extract<ErrorCode, 'ERR_PLUGIN_LOAD' | 'ERR_PLUGIN_SETUP'>,
): void {
  const isPlain = isPlainInstance(instance);
  for (const key of methodNamesOf(instance)) {
    const complaint = complaintAbout(key, kind, isPlain);
    if (complaint === undefined) continue;
    const advice = isPlain ? '' : ' If it is not meant as a hook, rename it or make it #private.';
    throw new YardmasterError(
      code,
      `plugin "${plugin}" has a hook "${key}", which does not exist${complaint}${advice}`,
      { plugin, hook: key, known: namesOf(kind) },
    );
  }
}

/** Excludes instances of classes, which may have further methods. */
function isPlainInstance(instance: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(instance);
  return prototype === Object.prototype || prototype === null;
}
