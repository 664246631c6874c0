/** A fault of a configuration: its place in a file, its line in an error, and what is left without it. */
import { YardmasterError } from '../api/errors.ts';
import { pathText, type Problem, type Segment } from '../shared/schema.ts';
import { isPlainObject } from '../util/values.ts';

/** A place in a file; both count from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** The origin of a configuration. */
export interface ConfigOrigin {
  /** As people know it; undefined when the configuration was given in code. */
  readonly file: string | undefined;
  locate(at: readonly Segment[], aboutKey?: boolean): Position | undefined;
  /** The place at which a part was written, when items of lists have moved since; default: where it is. */
  writtenAt?(at: readonly Segment[]): readonly Segment[];
}

/** A configuration that was given in code. */
export const IN_CODE: ConfigOrigin = { file: undefined, locate: () => undefined };

/** One line: `cluster.yaml:4:14: scheduler.allowedFailures must be a whole number of at least 0 (got -1)`. */
export function problemLine({ at: now, message, aboutKey }: Problem, origin: ConfigOrigin): string {
  const at = origin.writtenAt?.(now) ?? now;
  const position = origin.locate(at, aboutKey);
  const place =
    position === undefined ? origin.file : `${origin.file}:${position.line}:${position.column}`;
  return `${place === undefined ? '' : `${place}: `}${pathText(at)} ${message}`;
}

/** All problems in one error, one line each; `data.problems` has them as fields. */
export function configError(unordered: readonly Problem[], origin: ConfigOrigin): YardmasterError {
  const problems = inFileOrder(unordered, origin);
  const lines = problems.map((problem) => problemLine(problem, origin));
  const count = lines.length === 1 ? 'a problem' : `${lines.length} problems`;
  return new YardmasterError(
    'ERR_CONFIG',
    `the configuration has ${count}:\n${lines.map((line) => `  ${line}`).join('\n')}`,
    {
      problems: problems.map((problem, index) => ({
        path: pathText(origin.writtenAt?.(problem.at) ?? problem.at),
        message: problem.message,
        line: lines[index],
      })),
    },
  );
}

function inFileOrder(problems: readonly Problem[], origin: ConfigOrigin): readonly Problem[] {
  const placed = problems.map((problem) => ({
    problem,
    place: origin.locate(origin.writtenAt?.(problem.at) ?? problem.at, problem.aboutKey) ?? {
      line: 0,
      column: 0,
    },
  }));
  placed.sort((a, b) => a.place.line - b.place.line || a.place.column - b.place.column);
  return placed.map(({ problem }) => problem);
}

/** A frozen copy of what is plain; buffers, instances, and what a `use` holds stay the same objects. */
export function frozenCopy<T>(value: T): T {
  if (Object.isFrozen(value)) return value;
  if (Array.isArray(value)) return Object.freeze(value.map(frozenCopy)) as T;
  if (!isPlainObject(value)) return value;
  const fields = Object.entries(value).map(([key, field]) => [
    key,
    key === 'use' ? field : frozenCopy(field),
  ]);
  return Object.freeze(Object.fromEntries(fields)) as T;
}

/** A configuration without its invalid parts. */
interface ValidParts {
  readonly value: unknown;
  /** The place at which a part of {@link value} was written: items of lists move up when others are removed. */
  writtenAt(at: readonly Segment[]): readonly Segment[];
}

/**
 * Removes from a configuration all that a check finds wrong, and what is incomplete without it.
 * @param problems - what is wrong with it as it is written
 * @param check - finds what is wrong with what is left; O(depth) calls
 */
export function keepValidParts(
  root: unknown,
  problems: readonly Problem[],
  check: (rest: unknown) => readonly Problem[],
): ValidParts {
  const indices = new Map<unknown, number[]>();
  const top = { root: copied(root, indices) };
  let wrong = problems;
  while (wrong.length > 0) {
    // Later items of a list go first, so that the places of the earlier ones stay right.
    const ordered = [...wrong].sort((a, b) => compareBackwards(a.at, b.at));
    const targets = new Set(ordered.map(({ at }) => JSON.stringify(existing(top.root, at))));
    for (const target of targets) remove(top, JSON.parse(target) as Segment[], indices);
    wrong = check(top.root);
  }
  return { value: top.root, writtenAt: (at) => writtenAt(top.root, at, indices) };
}

/** An origin that locates parts of what is left where they were written. */
export function originOf(parts: ValidParts, origin: ConfigOrigin): ConfigOrigin {
  return {
    file: origin.file,
    locate: (at, aboutKey) => origin.locate(at, aboutKey),
    writtenAt: (at) => parts.writtenAt(at),
  };
}

/** The longest beginning of the path that leads somewhere. */
function existing(root: unknown, at: readonly Segment[]): readonly Segment[] {
  let value = root;
  for (const [depth, segment] of at.entries()) {
    const isThere = Array.isArray(value)
      ? typeof segment === 'number' && segment < value.length
      : isPlainObject(value) && Object.hasOwn(value, segment);
    if (!isThere) return at.slice(0, depth);
    value = (value as Record<Segment, unknown>)[segment];
  }
  return at;
}

function remove(
  top: { root: unknown },
  at: readonly Segment[],
  indices: ReadonlyMap<unknown, number[]>,
): void {
  const last = at.at(-1);
  if (last === undefined) {
    top.root = {};
    return;
  }
  const parent = at
    .slice(0, -1)
    .reduce<unknown>((value, segment) => (value as Record<Segment, unknown>)[segment], top.root);
  if (Array.isArray(parent)) {
    parent.splice(last as number, 1);
    indices.get(parent)?.splice(last as number, 1);
  } else if (isPlainObject(parent)) Reflect.deleteProperty(parent, last);
}

function writtenAt(
  root: unknown,
  at: readonly Segment[],
  indices: ReadonlyMap<unknown, number[]>,
): readonly Segment[] {
  let value = root;
  return at.map((segment) => {
    const written = typeof segment === 'number' ? indices.get(value)?.[segment] : undefined;
    value = (value as Record<Segment, unknown> | undefined)?.[segment];
    return written ?? segment;
  });
}

/** Copies objects and lists; what a `use` holds stays the same object. */
function copied(value: unknown, indices: Map<unknown, number[]>): unknown {
  if (Array.isArray(value)) {
    const list = value.map((item) => copied(item, indices));
    indices.set(
      list,
      list.map((_, index) => index),
    );
    return list;
  }
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) => [
      key,
      key === 'use' ? field : copied(field, indices),
    ]),
  );
}

function compareBackwards(a: readonly Segment[], b: readonly Segment[]): number {
  for (let depth = 0; depth < Math.min(a.length, b.length); depth++) {
    const [one, other] = [a[depth], b[depth]];
    if (one === other) continue;
    if (typeof one === 'number' && typeof other === 'number') return other - one;
    return String(other) < String(one) ? -1 : 1;
  }
  return b.length - a.length;
}
