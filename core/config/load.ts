import { readFile } from 'node:fs/promises';
import { dirname, extname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml';
import { YardmasterError } from '../api/errors.ts';
import { check, deepFreeze } from './check.ts';
import { type ConfigOrigin, configError, IN_CODE, type Position, type Segment } from './errors.ts';
import { normaliseEntries } from './entries.ts';
import { isPlainObject } from './prepare.ts';
import { CONFIG_SCHEMA } from './schema.ts';
import { applyScheduling, camelCase, normaliseScheduling, schedulingNotes } from './scheduling.ts';
import type { Config, ConfigInput } from './types.ts';

/** A checked configuration, and what later checks need to name places in it. */
export interface LoadedConfig {
  readonly config: Config;
  readonly origin: ConfigOrigin;
  /** What was written and does nothing, one line each. */
  readonly notes: readonly string[];
  /** Folder that relative `use` paths and packages are resolved from. */
  readonly folder: string;
}

/** The text of a file, parsed, with positions. */
interface Source {
  readonly value: unknown;
  readonly origin: ConfigOrigin;
}

/**
 * Reads and checks a configuration file: YAML, JSON, or a module whose default export it is.
 * @param file - path, relative to the current folder
 * @throws YardmasterError `ERR_CONFIG` with every problem of the file
 */
export async function loadConfigFile(file: string): Promise<LoadedConfig> {
  const path = resolve(file);
  const source = isModule(path) ? await importSource(file, path) : await readSource(file, path);
  return { ...checkSource(source), folder: dirname(path) };
}

/**
 * Checks a configuration that is given in code.
 * @param folder - what relative `use` paths are relative to; default: the current folder
 * @throws YardmasterError `ERR_CONFIG` with every problem
 */
export function loadConfigObject(value: ConfigInput, folder: string = process.cwd()): LoadedConfig {
  return { ...checkSource({ value, origin: IN_CODE }), folder: resolve(folder) };
}

function checkSource({ value, origin }: Source): Omit<LoadedConfig, 'folder'> {
  const { value: spelled, problems: twice } = normaliseScheduling(value ?? {});
  const { value: normal, problems: early } = normaliseEntries(spelled);
  const { value: checked, problems: late } = check(CONFIG_SCHEMA, normal);
  const problems = [...twice, ...early, ...late];
  if (problems.length > 0) throw configError(problems, origin);
  const notes = schedulingNotes(normal, origin);
  return { config: deepFreeze(applyScheduling(checked as Config)), origin, notes };
}

async function readSource(file: string, path: string): Promise<Source> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (cause) {
    throw new YardmasterError(
      'ERR_CONFIG',
      `the configuration file ${file} cannot be read: ${(cause as Error).message}`,
      { file },
      { cause },
    );
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const contents = document.contents as Node | null;
  const origin: ConfigOrigin = {
    file,
    locate: (at, aboutKey) => locate(contents, lines, at, aboutKey === true),
  };
  if (document.errors.length > 0) {
    const problems = document.errors.map(({ message, pos }) => ({ message, offset: pos[0] }));
    throw syntaxError(file, lines, problems);
  }
  return { value: document.toJS() as unknown, origin };
}

/** Unlike other problems these have an offset and no path. */
function syntaxError(
  file: string,
  lines: LineCounter,
  problems: readonly { readonly message: string; readonly offset: number }[],
): YardmasterError {
  // What follows from an error at the same place explains nothing.
  const first = problems.filter(
    ({ offset }, index) => problems.findIndex((other) => other.offset === offset) === index,
  );
  const texts = first.map(({ message, offset }) => {
    const { line, col } = lines.linePos(offset);
    return `${file}:${line}:${col}: ${message}`;
  });
  return new YardmasterError(
    'ERR_CONFIG',
    `the configuration cannot be parsed:\n${texts.map((text) => `  ${text}`).join('\n')}`,
    { file, problems: texts.map((line) => ({ path: '(top)', message: line, line })) },
  );
}

async function importSource(file: string, path: string): Promise<Source> {
  let module: { readonly default?: unknown };
  try {
    module = (await import(/* @vite-ignore */ pathToFileURL(path).href)) as typeof module;
  } catch (cause) {
    const { code, message } = cause as { code?: unknown; message?: unknown };
    const advice =
      code === 'ERR_UNKNOWN_FILE_EXTENSION'
        ? '; run with "--import tsx", or compile it to JavaScript first'
        : '';
    throw new YardmasterError(
      'ERR_CONFIG',
      `the configuration module ${file} cannot be loaded: ${String(message)}${advice}`,
      { file },
      { cause },
    );
  }
  if (!isPlainObject(module.default)) {
    throw new YardmasterError(
      'ERR_CONFIG',
      `the configuration module ${file} must export its configuration as default: export default defineConfig({ … })`,
      { file },
    );
  }
  return { value: module.default, origin: { file, locate: () => undefined } };
}

function isModule(path: string): boolean {
  return ['.js', '.mjs', '.cjs', '.ts', '.mts'].includes(extname(path));
}

/** The nearest place that exists in the file: of the value, or of its key. */
function locate(
  root: Node | null,
  lines: LineCounter,
  at: readonly Segment[],
  aboutKey: boolean,
): Position | undefined {
  let node: unknown = root;
  let offset = root?.range?.[0];
  at.forEach((segment, depth) => {
    const isLast = depth === at.length - 1;
    if (isMap(node)) {
      if (segment === 'options' && !node.has('options') && node.has('class')) return; // Inline.
      const pair = node.items.find(({ key }) => isScalar(key) && isSpelled(key.value, segment));
      const keyOffset = (pair?.key as Node | undefined)?.range?.[0];
      node = pair?.value;
      const valueOffset = (node as Node | null | undefined)?.range?.[0];
      offset = (isLast && aboutKey ? keyOffset : (valueOffset ?? keyOffset)) ?? offset;
    } else if (isSeq(node) && typeof segment === 'number') {
      node = node.items[segment];
      offset = (node as Node | undefined)?.range?.[0] ?? offset;
    } else {
      node = undefined;
    }
  });
  if (offset === undefined) return undefined;
  const { line, col } = lines.linePos(offset);
  return { line, column: col };
}

/** The section `scheduling` may have its keys in Mars' spelling. */
function isSpelled(written: unknown, segment: Segment): boolean {
  return written === segment || (typeof written === 'string' && camelCase(written) === segment);
}
