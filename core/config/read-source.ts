import { readFile } from 'node:fs/promises';
import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, visit } from 'yaml';
import { YardmasterError } from '../api/errors.ts';
import type { Segment } from '../shared/schema.ts';
import type { ConfigOrigin, Position } from './problems.ts';
import { camelCase } from '../shared/settings.ts';

/** A parsed file, and where its parts stand in it. */
export interface Source {
  readonly value: unknown;
  readonly origin: ConfigOrigin;
}

/** An objection of the parser, and its place. */
interface Problem {
  readonly message: string;
  readonly offset: number;
}

/**
 * Reads a configuration in YAML or JSON.
 * @param file - its name in messages
 * @throws YardmasterError `ERR_CONFIG` when it cannot be read, or is no YAML
 */
export async function readSource(file: string, path: string): Promise<Source> {
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
    const broken = path.endsWith('.json') ? jsonProblem(text) : undefined;
    throw syntaxError(file, lines, broken === undefined ? problems : [broken]);
  }
  visit(document, {
    Alias: (_key, alias, path) => {
      if (!path.includes(alias.resolve(document) as Node)) return;
      const message = `*${alias.source} stands within &${alias.source}, which would never end`;
      throw syntaxError(file, lines, [{ message, offset: alias.range?.[0] ?? 0 }]);
    },
  });
  return { value: document.toJS() as unknown, origin };
}

/** The problem of a file of JSON, in words of JSON instead of YAML; undefined when it is valid. */
function jsonProblem(text: string): Problem | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    const { message } = error as Error;
    const position = / at position (\d+)/.exec(message)?.[1];
    const what = message.replace(/(?: in JSON)? at position .*/, '');
    return {
      message: `not valid JSON: ${what}`,
      offset: Number(position ?? text.trimEnd().length),
    };
  }
}

/** Unlike other problems these have an offset and no path. */
function syntaxError(
  file: string,
  lines: LineCounter,
  problems: readonly Problem[],
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

/** Keys may be written in the spelling of another system: with underscores or dashes. */
function isSpelled(written: unknown, segment: Segment): boolean {
  return written === segment || (typeof written === 'string' && camelCase(written) === segment);
}
