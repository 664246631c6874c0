import { readdirSync, readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { dirname, extname, isAbsolute, join } from 'node:path';
import type * as Yaml from 'yaml';
import { isObject, messageOf, YardmasterError } from '../../core/api/index.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface DaskEntry {
  /** Dotted, with dashes: `distributed.scheduler.worker-ttl`. */
  readonly key: string;
  readonly value: unknown;
  /** The file or the variable of the environment that says it. */
  readonly source: string;
}

/** Either a value with its source, or names below it. */
interface Node {
  /** As it was first spelled. */
  readonly name: string;
  entry?: { readonly value: unknown; readonly source: string };
  children?: Map<string, Node>;
}

type Tree = Readonly<Record<string, unknown>>;

/**
 * The settings of Dask's own configuration, from its usual places: YAML files, then the environment; what
 * comes later wins. `-` and `_` are the same in names, as in Dask.
 */
export class DaskConfig {
  private readonly root: Node = { name: '', children: new Map() };

  /**
   * Reads the files of `$DASK_ROOT_CONFIG` (else `/etc/dask`), `etc/dask` of the Python environment,
   * `~/.config/dask` and `$DASK_CONFIG`, then `$DASK_INTERNAL_INHERIT_CONFIG` and `$DASK_…`.
   * Source of the rule: `_get_paths` and `collect` of `dask/config.py`.
   * @param python - the Python whose environment counts; default: the active virtual environment
   * @throws YardmasterError `ERR_CONFIG` when a file is not a YAML mapping
   */
  static read(env: Environment, python?: string): DaskConfig {
    const config = new DaskConfig();
    for (const folder of foldersOf(env, python)) {
      for (const file of filesIn(folder)) {
        const tree = readTree(file);
        if (tree !== undefined) config.merge(renamed(tree), file);
      }
    }
    config.mergeEnvironment(env);
    return config;
  }

  /** Merges a tree over the known values. @param source - recorded with each value */
  merge(tree: Tree, source: string): void {
    for (const [name, value] of Object.entries(tree)) mergeInto(this.root, name, value, source);
  }

  /** The value at a dotted key; undefined when it is not configured. A section is no value. */
  find(key: string): DaskEntry | undefined {
    const node = this.nodeAt(key);
    return node?.entry === undefined ? undefined : { key, ...node.entry };
  }

  /** All values below a dotted key, or the one at it, in the order in which they were first named. */
  below(key: string): readonly DaskEntry[] {
    const found: DaskEntry[] = [];
    const visit = (node: Node, path: string): void => {
      if (node.entry !== undefined) found.push({ key: path, ...node.entry });
      for (const [name, child] of node.children ?? []) visit(child, `${path}.${name}`);
    };
    const start = this.nodeAt(key);
    if (start !== undefined) visit(start, key);
    return found;
  }

  /** The names directly below a key as they were spelled, with their values. */
  entriesOf(key: string): readonly (readonly [name: string, entry: DaskEntry])[] {
    return [...(this.nodeAt(key)?.children ?? [])].flatMap(([path, { name, entry }]) =>
      entry === undefined ? [] : [[name, { key: `${key}.${path}`, ...entry }] as const],
    );
  }

  private nodeAt(key: string): Node | undefined {
    return key
      .split('.')
      .reduce<Node | undefined>((node, name) => node?.children?.get(canonical(name)), this.root);
  }

  private mergeEnvironment(env: Environment): void {
    const inherited = env['DASK_INTERNAL_INHERIT_CONFIG'];
    if (inherited !== undefined && inherited !== '') {
      this.merge(inheritedTree(inherited), 'DASK_INTERNAL_INHERIT_CONFIG');
    }
    for (const [variable, text] of Object.entries(env)) {
      if (!variable.startsWith('DASK_') || text === undefined) continue;
      if (variable === 'DASK_INTERNAL_INHERIT_CONFIG') continue;
      const path = variable.slice('DASK_'.length).toLowerCase().split('__');
      const tree = path.reduceRight<unknown>(
        (value, name) => ({ [name]: value }),
        parsePythonValue(text),
      ) as Tree;
      this.merge(renamed(tree), variable);
    }
  }
}

function mergeInto(parent: Node, name: string, value: unknown, source: string): void {
  const key = canonical(name);
  const children = (parent.children ??= new Map<string, Node>());
  let node = children.get(key);
  if (node === undefined) children.set(key, (node = { name }));
  if (isObject(value)) {
    delete node.entry;
    node.children ??= new Map<string, Node>();
    for (const [each, item] of Object.entries(value)) mergeInto(node, each, item, source);
  } else {
    delete node.children;
    node.entry = { value, source };
  }
}

/** Moves what stands under the former name of a key. Source of the rule: `dask.config.rename`. */
function renamed(tree: Tree): Tree {
  let result = tree;
  for (const [former, present] of RENAMED_KEYS) {
    const taken = without(result, former.split('.'));
    if (taken === undefined) continue;
    const moved = present
      .split('.')
      .reduceRight<unknown>((value, name) => ({ [name]: value }), taken.value);
    result = joined(taken.rest, moved as Tree);
  }
  return result;
}

function without(
  tree: Tree,
  [first = '', ...rest]: readonly string[],
): { readonly value: unknown; readonly rest: Tree } | undefined {
  const name = Object.keys(tree).find((each) => canonical(each) === first);
  if (name === undefined) return undefined;
  const { [name]: found, ...others } = tree;
  if (rest.length === 0) return { value: found, rest: others };
  const inner = isObject(found) ? without(found, rest) : undefined;
  return inner === undefined ? undefined : { ...inner, rest: { ...others, [name]: inner.rest } };
}

function joined(left: Tree, right: Tree): Tree {
  const result: Record<string, unknown> = { ...left };
  for (const [name, value] of Object.entries(right)) {
    const same = Object.keys(result).find((each) => canonical(each) === canonical(name)) ?? name;
    const old = result[same];
    result[same] = isObject(old) && isObject(value) ? joined(old, value) : value;
  }
  return result;
}

function foldersOf(env: Environment, python: string | undefined): string[] {
  const { DASK_ROOT_CONFIG = '/etc/dask', DASK_CONFIG, VIRTUAL_ENV, CONDA_PREFIX } = env;
  const named = python !== undefined && isAbsolute(python) ? dirname(dirname(python)) : undefined;
  const prefix = named ?? VIRTUAL_ENV ?? CONDA_PREFIX;
  const home = env['HOME'] ?? homedir();
  const folders = [
    DASK_ROOT_CONFIG,
    ...(prefix === undefined || prefix === '' ? [] : [join(prefix, 'etc', 'dask')]),
    join(home, '.config', 'dask'),
    ...(DASK_CONFIG === undefined ? [] : [DASK_CONFIG]),
  ];
  // Each folder once, where it is named last.
  return folders.filter((folder, index) => folders.lastIndexOf(folder) === index);
}

function filesIn(path: string): string[] {
  try {
    if (!statSync(path).isDirectory()) return [path];
    return readdirSync(path)
      .filter((name) => ['.yaml', '.yml', '.json'].includes(extname(name).toLowerCase()))
      .sort()
      .map((name) => join(path, name));
  } catch {
    return []; // As with Dask, a folder that does not exist configures nothing.
  }
}

function readTree(file: string): Tree | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return undefined; // As with Dask, a file without the permission to read it configures nothing.
  }
  // Most machines have no such file, and to load the parser takes a tenth of a start.
  const { parse } = createRequire(import.meta.url)('yaml') as typeof Yaml;
  let tree: unknown;
  try {
    // PyYAML reads this version (`off` is false), and of a key that stands twice the last.
    tree = parse(text, { version: '1.1', uniqueKeys: false });
  } catch (cause) {
    throw unreadable(file, messageOf(cause), cause);
  }
  if (tree === null || tree === undefined) return undefined;
  if (isObject(tree)) return tree;
  throw unreadable(file, `its top level must be a mapping, and is ${JSON.stringify(tree)}`);
}

/** Dask hands its configuration to processes that it starts as JSON in base64. */
function inheritedTree(text: string): Tree {
  try {
    const tree: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
    if (isObject(tree)) return renamed(tree);
  } catch (cause) {
    throw unreadable('$DASK_INTERNAL_INHERIT_CONFIG', 'it is not JSON in base64', cause);
  }
  throw unreadable('$DASK_INTERNAL_INHERIT_CONFIG', 'it must hold a mapping');
}

function unreadable(file: string, reason: string, cause?: unknown): YardmasterError {
  return new YardmasterError(
    'ERR_CONFIG',
    `Dask's configuration ${file} cannot be read: ${reason}; correct it, or take it out of Dask's configuration folders`,
    { file },
    cause === undefined ? undefined : { cause },
  );
}

/** In Dask's names `-` and `_` are the same. */
function canonical(name: string): string {
  return name.replaceAll('_', '-');
}

/** Returned by a reader that finds something else than a literal. */
const NOT_A_LITERAL = Symbol('not a literal');

const WORDS: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['None', null],
  ['True', true],
  ['False', false],
]);

/** The words that Dask reads as YAML does, in any case. */
const LENIENT: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['none', null],
  ['null', null],
  ['true', true],
  ['false', false],
]);

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '\n': '' };
const NUMBER =
  /^[+-]?(?:0[xX][\da-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)/;

/**
 * The value of an environment variable as Dask reads it: a literal of Python (`None`, `True`, numbers,
 * quoted texts, lists, tuples, sets, dictionaries), and any other text as it stands.
 * Source of the rule: `dask.config.interpret_value`.
 */
export function parsePythonValue(text: string): unknown {
  const trimmed = text.trim();
  // A tuple needs no parentheses, and other literals may have some.
  const value = trimmed === '' ? NOT_A_LITERAL : new LiteralReader(`(${trimmed})`).readAll();
  if (value !== NOT_A_LITERAL) return value;
  const lenient = LENIENT.get(text.toLowerCase());
  return lenient === undefined ? text : lenient;
}

/** Reads one literal from left to right. */
class LiteralReader {
  private at = 0;

  constructor(private readonly text: string) {}

  /** The literal that the whole text is, or `NOT_A_LITERAL`. */
  readAll(): unknown {
    const value = this.read();
    this.skipBlanks();
    return this.at === this.text.length ? value : NOT_A_LITERAL;
  }

  private read(): unknown {
    this.skipBlanks();
    const first = this.text.charAt(this.at);
    if (first === '"' || first === "'") return this.readText(first);
    if (first === '[') return this.readItems(']');
    if (first === '(') return this.readTuple();
    if (first === '{') return this.readBraces();
    const rest = this.text.slice(this.at);
    const word = /^[A-Za-z_]\w*/.exec(rest)?.[0];
    if (word !== undefined) {
      this.at += word.length;
      return WORDS.has(word) ? WORDS.get(word) : NOT_A_LITERAL;
    }
    return this.readNumber(rest);
  }

  private readNumber(rest: string): unknown {
    const number = NUMBER.exec(rest)?.[0];
    if (number === undefined || number.endsWith('_')) return NOT_A_LITERAL;
    this.at += number.length;
    const plain = number.replaceAll('_', '');
    const sign = plain.startsWith('-') ? -1 : 1;
    const digits = plain.replace(/^[+-]/, '');
    // Python refuses integers with leading zeros, such as 007.
    if (/^0\d+$/.test(digits) && !/^0+$/.test(digits)) return NOT_A_LITERAL;
    return sign * Number(digits);
  }

  private readText(quote: string): unknown {
    let value = '';
    for (this.at++; this.at < this.text.length; this.at++) {
      const character = this.text.charAt(this.at);
      if (character === quote) {
        this.at++;
        return value;
      }
      if (character !== '\\') value += character;
      else {
        const escaped = this.text.charAt(++this.at);
        if (escaped === '\\' || escaped === '"' || escaped === "'") value += escaped;
        else value += ESCAPES[escaped] ?? `\\${escaped}`;
      }
    }
    return NOT_A_LITERAL;
  }

  /** Items up to the closing bracket; a comma may follow the last one. */
  private readItems(close: string): unknown {
    const items: unknown[] = [];
    this.at++;
    for (;;) {
      if (this.takes(close)) return items;
      const item = this.read();
      if (item === NOT_A_LITERAL) return NOT_A_LITERAL;
      items.push(item);
      if (this.takes(',')) continue;
      return this.takes(close) ? items : NOT_A_LITERAL;
    }
  }

  /** A tuple is a list here; parentheses around one value without a comma are only parentheses. */
  private readTuple(): unknown {
    const start = this.at;
    const items = this.readItems(')');
    if (!Array.isArray(items) || items.length !== 1) return items;
    return /,\s*\)$/.test(this.text.slice(start, this.at)) ? items : (items[0] as unknown);
  }

  /** A dictionary, or a set as a list. */
  private readBraces(): unknown {
    const start = this.at;
    const entries: Record<string, unknown> = {};
    this.at++;
    for (;;) {
      if (this.takes('}')) return entries;
      const key = this.read();
      if (key === NOT_A_LITERAL) return NOT_A_LITERAL;
      if (!this.takes(':')) {
        this.at = start;
        return this.readItems('}');
      }
      const value = this.read();
      if (value === NOT_A_LITERAL) return NOT_A_LITERAL;
      Object.defineProperty(entries, String(key), {
        value,
        enumerable: true,
        configurable: true,
        writable: true,
      });
      if (this.takes(',')) continue;
      return this.takes('}') ? entries : NOT_A_LITERAL;
    }
  }

  private takes(character: string): boolean {
    this.skipBlanks();
    if (this.text.charAt(this.at) !== character) return false;
    this.at++;
    return true;
  }

  private skipBlanks(): void {
    while (/\s/.test(this.text.charAt(this.at))) this.at++;
  }
}

const DISTRIBUTED_ROOT_KEYS = ['rmm'];
const SCHEDULER_KEYS = [
  'allowed-failures',
  'bandwidth',
  'default-data-size',
  'work-stealing',
  'worker-ttl',
];
const ADMIN_KEYS = ['log-length', 'log-format', 'pdb-on-err'];
const COMM_KEYS = ['compression', 'default-scheme', 'socket-backlog'];
const LOW_LEVEL_LOG = 'distributed.admin.low-level-log-length';

/**
 * Keys that Dask has renamed and still reads, by their old names. Names have dashes.
 * Source: `deprecations` of `distributed/config.py`, as far as they concern a scheduler.
 */
const RENAMED_KEYS: ReadonlyMap<string, string> = new Map([
  ...SCHEDULER_KEYS.map((key) => [key, `distributed.scheduler.${key}`] as const),
  ...ADMIN_KEYS.map((key) => [key, `distributed.admin.${key}`] as const),
  ...COMM_KEYS.map((key) => [key, `distributed.comm.${key}`] as const),
  ...DISTRIBUTED_ROOT_KEYS.map((key) => [key, `distributed.${key}`] as const),
  ['connect-timeout', 'distributed.comm.timeouts.connect'],
  ['tcp-timeout', 'distributed.comm.timeouts.tcp'],
  ['tick-time', 'distributed.admin.tick.interval'],
  ['tick-maximum-delay', 'distributed.admin.tick.limit'],
  ['diagnostics-link', 'distributed.dashboard.link'],
  ['bokeh-export-tool', 'distributed.dashboard.export-tool'],
  ['transition-log-length', LOW_LEVEL_LOG],
  ['recent-messages-log-length', LOW_LEVEL_LOG],
  ['distributed.comm.recent-messages-log-length', LOW_LEVEL_LOG],
]);
