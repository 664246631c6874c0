import { existsSync, realpathSync } from 'node:fs';
import { dirname, isAbsolute, join, parse, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

import { YardmasterError } from '../../../core/api/index.ts';
import type { ModuleLimit } from '../../../core/shared/module-limit.ts';
import { ancestors, codeRootAt, ownModule, projectOf } from './folders.ts';

/** Permits every file. */
const ALL = '*';

/**
 * Where the modules may be that a worker loads because a client names them. Decided by the real path: a symbolic
 * link leads nowhere else. Of Yardmaster itself the modules with tasks are always permitted, and no others.
 */
export class AllowedModules implements ModuleLimit {
  /**
   * @param folders - real paths; a file permits itself
   * @param codeRoot - the project in which modules are looked for that clients name relative to theirs
   */
  constructor(
    readonly folders: readonly string[],
    readonly codeRoot = projectOf(process.cwd()),
  ) {}

  /**
   * @param entries - folders and files, which start with `.` or `/`, or names of packages as they are seen from
   *   the folder; `*` permits every file. Default: the project in which modules are looked for
   * @param codeRoot - that project. Default: the project of the current folder
   * @throws YardmasterError `ERR_CONFIG` when there is no such folder or package
   */
  static of(
    entries: readonly string[] | undefined,
    folder: string,
    codeRoot?: string,
  ): AllowedModules {
    const own = projectOf(import.meta.dirname);
    const root = codeRoot === undefined ? projectOf(process.cwd()) : codeRootAt(codeRoot);
    if (entries === undefined) return new AllowedModules(unlessRoot([own, root]), root);
    const places = entries.map((entry) => placeOf(entry, folder));
    return new AllowedModules([...unlessRoot([own]), ...places], root);
  }

  /**
   * @param module - a URL, or an absolute path
   * @throws YardmasterError `ERR_MODULE_REFUSED`
   */
  check(module: string): void {
    const path = pathOf(module);
    if (path === undefined) throw refused(module, 'is not a file, and only files are permitted');
    const real = realPath(path);
    checkOwn(module, real);
    if (this.folders.some((folder) => real === folder || real.startsWith(withEnd(folder)))) return;
    throw refused(
      module,
      `is in none of the folders from which this worker may load modules: ${this.folders.join(', ')}`,
    );
  }
}

/**
 * Refuses modules of Yardmaster that are not made for workers: some of their functions import what they are given, which
 * would permit every file.
 * @param module - a URL, or an absolute path
 * @throws YardmasterError `ERR_MODULE_REFUSED`
 */
export function checkOwnModule(module: string): void {
  const path = pathOf(module);
  if (path !== undefined) checkOwn(module, realPath(path));
}

function checkOwn(module: string, real: string): void {
  if (ownModule(real) !== 'code') return;
  const shown = shownModule(module);
  throw new YardmasterError(
    'ERR_MODULE_REFUSED',
    `${shown} is a module of Yardmaster that is not made for tasks; call what you need of it in a function of your own module`,
    { module: shown },
  );
}

function shownModule(module: string): string {
  return module.length > 200 ? `${module.slice(0, 200)}…` : module;
}

function refused(module: string, why: string): YardmasterError {
  const shown = shownModule(module);
  return new YardmasterError(
    'ERR_MODULE_REFUSED',
    `${shown} ${why}; start the worker in the folder of the project, or permit the module's folder or package: worker.allowModules, --allow-modules`,
    { module: shown },
  );
}

/** Undefined for what is not a file. */
function pathOf(module: string): string | undefined {
  if (isAbsolute(module)) return module;
  try {
    return fileURLToPath(module);
  } catch {
    return undefined;
  }
}

/** Of a file that does not exist: what its nearest folder that does leads to. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(realPath(parent), path.slice(parent.length));
  }
}

function placeOf(entry: string, folder: string): string {
  if (entry === ALL) return parse(resolve(folder)).root;
  const isPath = entry.startsWith('.') || isAbsolute(entry);
  const place = isPath ? resolve(folder, entry) : packageOf(entry, folder);
  if (place !== undefined && existsSync(place)) return realpathSync(place);
  throw new YardmasterError(
    'ERR_CONFIG',
    isPath
      ? `worker.allowModules names ${place}, which does not exist`
      : `worker.allowModules names the package "${entry}", which is not installed where ${folder} can import it; to name a folder, write "./${entry}"`,
    { entry },
  );
}

function packageOf(name: string, folder: string): string | undefined {
  return ancestors(folder)
    .map((ancestor) => join(ancestor, 'node_modules', name))
    .find((place) => existsSync(place));
}

/** A process that was started in `/` has no project: nothing would be refused. */
function unlessRoot(folders: readonly string[]): readonly string[] {
  return folders.filter((folder) => folder !== parse(folder).root);
}

function withEnd(folder: string): string {
  return folder.endsWith(sep) ? folder : folder + sep;
}
