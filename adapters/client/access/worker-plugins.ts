import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type RemotePlugin, YardmasterError } from '../../../core/api/index.ts';
import { checkNames } from '../submission/options.ts';

/** A plugin for all workers. Only its name travels, so each worker has to find the module. */
export interface WorkerPluginEntry {
  /**
   * Its module: a path (one that starts with `.` is relative to the current folder), a `file:` URL, or a
   * package. `#Name` picks an export, else the default one.
   */
  readonly use: string | URL;
  readonly options?: Readonly<Record<string, unknown>>;
  /** Under which it is known; one of the same name is replaced. Default: `use`. */
  readonly name?: string;
  /** Do nothing when there is one of that name. Default false. */
  readonly idempotent?: boolean;
}

/**
 * The description of the plugin that the scheduler receives. @throws YardmasterError
 * `ERR_PLUGIN_LOAD`
 */
export function remotePlugin(entry: WorkerPluginEntry): RemotePlugin & {
  readonly idempotent: boolean;
} {
  checkNames(entry, ['use', 'options', 'name', 'idempotent']);
  const { use, name, options, idempotent } = entry;
  const text: unknown = use instanceof URL ? use.href : use;
  if (typeof text !== 'string' || text === '') {
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      'a plugin for workers is named by its module, as in { use: "./plugin.js" }; code cannot travel',
    );
  }
  return {
    name: name ?? text,
    use: located(text),
    ...(options === undefined ? {} : { options }),
    idempotent: idempotent ?? false,
  };
}

/** The same module from wherever a worker runs on this machine. */
function located(use: string): string {
  const hash = use.lastIndexOf('#');
  const [module, rest] = hash > 0 ? [use.slice(0, hash), use.slice(hash)] : [use, ''];
  if (module.startsWith('file:')) return fileURLToPath(module) + rest;
  return module.startsWith('.') ? resolve(module) + rest : use;
}
