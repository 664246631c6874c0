import { distance } from 'fastest-levenshtein';
import { type ErrorCode, YardmasterError } from '../api/errors.ts';
import { HOOK_NAMES } from '../api/hooks.ts';

/** What a plugin is for: the scheduler, a worker, a nanny. */
export type PluginKind = 'plugin' | 'worker-plugin' | 'nanny-plugin';

interface KnownNames {
  readonly hooks: readonly string[];
  /** Methods that are called at moments of the plugin's life. */
  readonly life: readonly string[];
  /** Names that plugins of Dask have for the same, simplified; '' where nothing is like it. */
  readonly dask: Readonly<Record<string, string>>;
  /** What other kinds of plugins call the same, simplified. */
  readonly aliases: Readonly<Record<string, string>>;
}

/** All methods of each kind of plugin that are ever called. */
const KNOWN: Readonly<Record<PluginKind, KnownNames>> = {
  plugin: {
    hooks: HOOK_NAMES,
    life: ['setup', 'start', 'beforeClose', 'close'],
    dask: {
      transition: 'taskTransition',
      updategraph: 'graphUpdated',
      addworker: 'workerAdded',
      removeworker: 'workerRemoved',
      addclient: 'clientAdded',
      removeclient: 'clientRemoved',
      restart: 'restarted',
      logevent: 'eventLogged',
      validworkersdownscaling: '',
    },
    aliases: { teardown: 'close', statuschanged: 'workerStatusChanged' },
  },
  'worker-plugin': {
    hooks: ['taskTransition', 'statusChanged', 'schedulerLost', 'schedulerBack'],
    life: ['setup', 'close'],
    dask: { transition: 'taskTransition', releasekey: '', releasedep: '' },
    aliases: { teardown: 'close', workerstatuschanged: 'statusChanged' },
  },
  'nanny-plugin': {
    hooks: ['processStarting', 'processRegistered', 'processEnded'],
    life: ['setup', 'close'],
    dask: {},
    aliases: { teardown: 'close' },
  },
};

const NOUNS: Readonly<Record<PluginKind, string>> = {
  plugin: 'plugins of the scheduler',
  'worker-plugin': 'plugins of workers',
  'nanny-plugin': 'plugins of nannies',
};

/** Hooks shorter than this have to differ by case or dashes alone to count as misspelt. */
const LONG_NAME = 10;

/** Every hook of a kind of plugin. */
export function hooksOf(kind: PluginKind): readonly string[] {
  return KNOWN[kind].hooks;
}

/** Every hook and method of the life of a kind of plugin. */
export function namesOf(kind: PluginKind): readonly string[] {
  return [...hooksOf(kind), ...KNOWN[kind].life];
}

/** Hooks and methods that only this kind of plugin has. */
export function ownNamesOf(kind: PluginKind): readonly string[] {
  return namesOf(kind).filter((name) => !isOfOthers(name, kind));
}

/** Hooks that only this kind of plugin has. */
export function ownHooksOf(kind: PluginKind): readonly string[] {
  return hooksOf(kind).filter((name) => !isOfOthers(name, kind));
}

function isOfOthers(name: string, kind: PluginKind): boolean {
  const others = (Object.keys(KNOWN) as PluginKind[]).filter((other) => other !== kind);
  return others.some((other) => namesOf(other).includes(name));
}

/**
 * What is wrong with a method that is not called under its name: undefined when it may well be a method
 * of the plugin's own.
 *
 * @param isPlain - the plugin is an object of hooks, where nothing else belongs
 */
function complaintAbout(name: string, kind: PluginKind, isPlain: boolean): string | undefined {
  const { hooks, dask, aliases } = KNOWN[kind];
  if (namesOf(kind).includes(name)) return undefined;
  const simple = simplify(name);
  if (Object.hasOwn(dask, simple)) return daskComplaint(dask[simple] ?? '');
  if (Object.hasOwn(aliases, simple)) return `; did you mean "${aliases[simple] ?? ''}"?`;
  const same = namesOf(kind).find((known) => simplify(known) === simple);
  if (same !== undefined) return `; did you mean "${same}"?`;
  const misspelt = hooks.find((hook) => isMisspelt(simple, simplify(hook)));
  if (misspelt !== undefined) return `; did you mean "${misspelt}"?`;
  const elsewhere = (Object.keys(KNOWN) as PluginKind[]).find((other) =>
    ownNamesOf(other).some((known) => simplify(known) === simple),
  );
  if (elsewhere !== undefined) return `; only ${NOUNS[elsewhere]} have it`;
  return isPlain ? `; there are ${namesOf(kind).join(', ')}` : undefined;
}

function daskComplaint(ours: string): string {
  if (ours === '') return '; Dask has it, and nothing calls it here';
  return `; that is Dask's name for it: did you mean "${ours}"?`;
}

/** Whether a name is near enough to a known one to be meant as it; both simplified. */
export function isMisspelt(simple: string, hook: string): boolean {
  const allowed = hook.length < LONG_NAME ? 1 : Math.max(2, Math.floor(hook.length / 5));
  return distance(simple, hook) <= allowed;
}

/** Case, dashes, underscores and dollar signs are no difference. */
export function simplify(name: string): string {
  return name.toLowerCase().replaceAll(/[-_$]/g, '');
}

/** Names of methods, and of hooks with an order, of an object or the instances of a class. */
export function methodNamesOf(value: object): string[] {
  const found = new Set<string>();
  for (let level: object | null = value; isOwnLevel(level); level = prototypeOf(level)) {
    for (const [name, { value: held }] of Object.entries(Object.getOwnPropertyDescriptors(level))) {
      if (name !== 'constructor' && isCallable(held)) found.add(name);
    }
  }
  return [...found];
}

function isOwnLevel(level: object | null): level is object {
  return level !== null && level !== Object.prototype && level !== Function.prototype;
}

function prototypeOf(value: object): object | null {
  return Object.getPrototypeOf(value) as object | null;
}

function isCallable(value: unknown): boolean {
  if (typeof value === 'function') return true;
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof Object.getOwnPropertyDescriptor(value, 'handler')?.value === 'function'
  );
}

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
