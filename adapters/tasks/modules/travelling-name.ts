/** How modules of tasks are named between machines on which their project lies in different folders. */
import { existsSync } from 'node:fs';
import { dirname, join, parse, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import type { FunctionSpec } from '../../../core/api/index.ts';
import type { TaskFunction } from '../task-function.ts';
import { ancestors, projectOf } from './folders.ts';

/** As in rsync: what follows is the same on all machines, what precedes is not. */
const MARK = '/./';
const PACKAGES = '/node_modules/';

/** By root, which is empty where none was given, and URL. Files do not move while a process runs. */
const namesByRoot = new Map<string, Map<string, string>>();

/**
 * The URL of a module with a mark (`/./`) after the root of its project, or after `node_modules`. The root is the
 * first of these that contains the module: `codeRoot`, the project of the current folder, the nearest folder with a
 * `package.json`. What is not a file keeps its URL.
 *
 * @param codeRoot - a real path
 */
export function travellingName(module: string, codeRoot = ''): string {
  let names = namesByRoot.get(codeRoot);
  if (names === undefined) namesByRoot.set(codeRoot, (names = new Map<string, string>()));
  const known = names.get(module);
  if (known !== undefined) return known;
  const name = markedName(module, codeRoot);
  names.set(module, name);
  return name;
}

/**
 * What a worker needs to know to find a function.
 * @param codeRoot - see {@link travellingName}
 */
export function travellingFunction(
  { module, name, version }: TaskFunction,
  codeRoot?: string,
): Pick<FunctionSpec, 'module' | 'name' | 'version'> {
  return { module: travellingName(module, codeRoot), name, version };
}

function markedName(module: string, codeRoot: string): string {
  if (!module.startsWith('file:') || module.includes(MARK)) return module;
  const packages = module.lastIndexOf(PACKAGES);
  if (packages >= 0) {
    const end = packages + PACKAGES.length;
    return `${module.slice(0, end)}./${module.slice(end)}`;
  }
  const path = fileURLToPath(module);
  const root = rootOf(path, codeRoot);
  const start = `${pathToFileURL(root).href}/`;
  if (root === parse(root).root || !module.startsWith(start)) return module;
  return `${start}./${module.slice(start.length)}`;
}

function rootOf(path: string, codeRoot: string): string {
  if (codeRoot !== '' && path.startsWith(codeRoot + sep)) return codeRoot;
  const here = projectOf(process.cwd());
  return path.startsWith(here + sep) ? here : projectOf(dirname(path));
}

/** What a name has in common with those of other machines. */
export function commonName(name: string): string {
  const at = name.indexOf(MARK);
  return at < 0 ? name : name.slice(at + MARK.length);
}

/** The URL that a name has where it was made. */
export function urlOf(name: string): string {
  return name.replace(MARK, '/');
}

/**
 * Where a module can be on this machine: in the project of this process, and where it is in that of the client. Files
 * that do not exist are left out.
 *
 * @param root - of the project of this process; default: that of the current folder
 */
export function placesOf(name: string, root: string = projectOf(process.cwd())): string[] {
  const at = name.indexOf(MARK);
  const own = at < 0 ? [] : ownPlaces(name.slice(0, at + 1), name.slice(at + MARK.length), root);
  const places = new Set([...own, urlOf(name)]);
  return [...places].filter((url) => !url.startsWith('file:') || existsSync(fileURLToPath(url)));
}

function ownPlaces(before: string, path: string, root: string): string[] {
  const folders = before.endsWith(PACKAGES)
    ? ancestors(root).map((folder) => join(folder, 'node_modules'))
    : [root];
  return folders.map((folder) => new URL(`./${path}`, pathToFileURL(folder + sep)).href);
}
