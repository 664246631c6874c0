/** The form of every place where an extension is named. */
import type { UseEntry } from '../../api/plugin.ts';
import { SLOT_NAMES, type SlotName } from '../../api/policies.ts';
import {
  choice,
  type Checked,
  list,
  section,
  type Setting,
  type Settings,
} from './schema-parts.ts';

/** A name, path or package; in code also the thing itself, or both with options. */
export type ExtensionInput =
  | string
  | object
  | { readonly use: unknown; readonly options?: object; readonly onError?: OnError };

/** One for each policy slot, or fewer. */
export type PerSlot<T> = Readonly<Partial<Record<SlotName, T>>>;

const onError = (owner: string) =>
  choice(
    'When a hook throws',
    `log: continue; disable: detach the plugin; crash: close the ${owner}.`,
    ['log', 'disable', 'crash'],
    { default: 'log' },
  );

/** What happens to a plugin whose hook throws. */
export type OnError = Checked<ReturnType<typeof onError>>;

/** A plugin as a configuration names it. */
export interface PluginEntry extends UseEntry {
  readonly onError: OnError;
}

const use = (what: string): object => ({
  title: `Which ${what}`,
  description:
    'A built-in name; a path that starts with ./ or / (relative to this file); or a package. #Name picks an export, else default.',
  type: 'string',
  extension: true,
});

const options = (what: string): object => ({
  title: `Options of the ${what}`,
  description: `Checked against the schema of the ${what}.`,
  type: 'object',
});

/**
 * An entry `{ use, options }`, or only a name.
 * @param what - what it names, for messages: `plugin`, `queuing policy`
 * @param rest - further keywords of the entry itself
 * @param more - further properties of the entry
 */
export const entry = <Entry extends UseEntry = UseEntry>(
  what: string,
  rest: object = {},
  more: Settings = {},
) =>
  ({
    type: ['object', 'string'], // A name alone is an entry without options.
    additionalProperties: false,
    required: ['use'],
    properties: { use: use(what), options: options(what), ...more },
    ...rest,
  }) as object as Setting<Entry, ExtensionInput, false>;

/**
 * Plugins: entries that say what happens when a hook throws.
 * @param what - what they are called in messages
 * @param owner - what `crash` closes
 */
export const plugins = (title: string, what: string, owner: string) =>
  list(
    title,
    'In the order in which they are set up and their hooks run.',
    entry<PluginEntry>(what, {}, { onError: onError(owner) }),
  );

/** Modules with `setup` and `close`. */
export const preload = (title: string, owner: string) =>
  list(
    title,
    `Modules whose setup is called before anything of the ${owner} is there, and whose close after it has closed.`,
    entry('module'),
  );

/** One setting for each policy slot. */
export const perSlot = <Value, Input>(
  title: string,
  description: string,
  ofSlot: (slot: SlotName) => Setting<Value, Input, false>,
) => {
  const of = Object.fromEntries(SLOT_NAMES.map((slot) => [slot, ofSlot(slot)]));
  return section(
    title,
    description,
    of as Readonly<Record<SlotName, Setting<Value, Input, false>>>,
  );
};
