import { type Command, Option } from 'commander';
import { YardmasterError } from '../../core/api/index.ts';
import type { Schema } from '../../core/shared/schema.ts';
import type { Settings } from '../../core/shared/settings.ts';
import { type ConfigInput, configuration } from '../app/config.ts';
import { collect, fromHere, pairs } from './command-line.ts';

// Settings of a section of the configuration as flags: `killGrace` is `--kill-grace`, with the description and the default
// of the schema. Values are checked as those of a configuration are.

/** Settings that become flags, and how. */
export interface FlagSection {
  readonly name: keyof ConfigInput;
  readonly properties: Settings;
  readonly letters?: Readonly<Record<string, string>>;
  /** Settings that a command reads itself, or not at all. */
  readonly without?: readonly string[];
}

export const WORKER_SETTINGS: FlagSection = {
  name: 'worker',
  properties: configuration.schema.properties.worker.properties,
  letters: { threads: 't', resources: 'r', memoryLimit: 'm' },
};

/** Settings that are flags of `scheduler`, which reads some itself. */
export const SCHEDULER_SETTINGS: FlagSection = {
  name: 'scheduler',
  properties: configuration.schema.properties.scheduler.properties,
  without: ['address', 'idleTimeout', 'preload'],
};

/** Adds a flag for each setting that can be written in a few words. */
export function addSettings(command: Command, section: FlagSection): Command {
  command.optionsGroup(`Settings of the section ${section.name} (they win over --config):`);
  for (const [key, node] of settingsOf(section)) {
    const letter = section.letters?.[key];
    const flag = `${letter === undefined ? '' : `-${letter}, `}--${kebab(key)}`;
    if (node.type === 'boolean') {
      const isDefault = node.default === true;
      command.addOption(new Option(flag, helpOf(node)).hideHelp(isDefault));
      command.addOption(
        new Option(`--no-${kebab(key)}`, `switches off: ${helpOf(node)}`).hideHelp(!isDefault),
      );
    } else
      command.addOption(
        new Option(`${flag} ${wordOf(node)}`, helpOf(node)).argParser(readerOf(node)),
      );
  }
  return command;
}

/**
 * The settings of the flags, in the form of a configuration.
 * @param flags - as commander gives them
 * @throws YardmasterError `ERR_CONFIG` with each flag that has another value than it may have
 */
export function settingsFrom(section: FlagSection, flags: object): Record<string, unknown> {
  const given = flags as Readonly<Record<string, unknown>>;
  const written = Object.fromEntries(
    settingsOf(section).flatMap(([key]) => (given[key] === undefined ? [] : [[key, given[key]]])),
  );
  checkFlags(section, written);
  return written;
}

function checkFlags({ name }: FlagSection, written: Readonly<Record<string, unknown>>): void {
  if (Object.keys(written).length === 0) return;
  const { error } = configuration.readObject({ [name]: written });
  if (error === undefined) return;
  const problems = error.data['problems'] as readonly { path: string; message: string }[];
  const lines = problems.map(({ path, message }) => {
    const [, key = '', rest = ''] = /^\w+\.(\w+)\.?(.*)$/.exec(path) ?? [];
    return `--${kebab(key)}${rest === '' ? '' : ` ${rest}`} ${message}`;
  });
  throw new YardmasterError('ERR_CONFIG', lines.join('\n'), { problems });
}

function settingsOf({ properties, without = [] }: FlagSection): [key: string, node: Schema][] {
  const all = Object.entries(properties) as [key: string, node: Schema][];
  // A flag that begins with --no- would switch something off.
  return all.filter(
    ([key, node]) => !without.includes(key) && !/^no[A-Z]/.test(key) && isShort(node),
  );
}

function isShort(node: Schema): boolean {
  const { properties, additionalProperties: values, items } = node;
  if (isEntry(node)) return false;
  if (properties !== undefined) return Object.values(properties).every(isScalar);
  if (items !== undefined) return isScalar(items) || isEntry(items);
  return isScalar(typeof values === 'object' ? values : node);
}

function isScalar({ type, unit }: Schema): boolean {
  return unit !== undefined || [type].flat().every((one) => one !== 'object' && one !== 'array');
}

function isEntry({ properties }: Schema): boolean {
  return properties !== undefined && Object.hasOwn(properties, 'use');
}

function readerOf(node: Schema): (text: string, previous: unknown) => unknown {
  const { items } = node;
  if (items !== undefined) {
    return (text, previous) =>
      collect(isEntry(items) ? fromHere(text) : text, previous as readonly string[] | undefined);
  }
  if (node.type === 'object') return pairs;
  if (node.type !== 'integer' && node.type !== 'number') return (text) => text;
  return (text) => (text.trim() === '' || Number.isNaN(Number(text)) ? text : Number(text));
}

const WORDS = { ms: '<time>', s: '<time>', bytes: '<size>', share: '<share>' } as const;

function wordOf(node: Schema): string {
  if (node.unit !== undefined) return WORDS[node.unit];
  if (node.enum !== undefined) return `<${node.enum.join('|')}>`;
  if (node.items !== undefined) return '<name>';
  if (node.type === 'object') return '<list>';
  return node.type === 'string' ? '<text>' : '<n>';
}

function helpOf({ description = '', default: value, properties, type }: Schema): string {
  const text = description.replace(/ Such as [^.]*\.?$/, '').replace(/\.$/, '');
  const example = type === 'object' ? `, as '${exampleOf(properties)}'` : '';
  const more = type === 'array' ? ' (repeatable)' : '';
  const isShown = typeof value === 'string' || typeof value === 'number';
  return `${text}${example}${more}${isShown ? ` (default: ${value})` : ''}`;
}

function exampleOf(properties: Schema['properties'] = {}): string {
  const [key, setting] = Object.entries(properties)[0] ?? ['GPU', { default: 1 }];
  return `${key}=${String(setting.default)}`;
}

/** `killGrace` → `kill-grace` */
function kebab(key: string): string {
  return key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
