import { YardmasterError } from '../api/errors.ts';

/** One step into a structure: a key of an object or an index of a list. */
export type Segment = string | number;

/** One thing that is wrong, before it is known where in a file it stands. */
export interface Problem {
  /** From the root of the configuration. */
  readonly at: readonly Segment[];
  /** What is wrong, to be read after the path: `must be >= 1 (got 0)`. */
  readonly message: string;
  /** The last segment is a key that should not be there. */
  readonly aboutKey?: boolean;
}

/** A place in a file; both count from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** Where a configuration comes from. */
export interface ConfigOrigin {
  /** As people know it; undefined when the configuration was given in code. */
  readonly file: string | undefined;
  locate(at: readonly Segment[], aboutKey?: boolean): Position | undefined;
  /** Where a part was written, when items of lists have moved since; default: where it is. */
  writtenAt?(at: readonly Segment[]): readonly Segment[];
}

/** A configuration that was given in code. */
export const IN_CODE: ConfigOrigin = { file: undefined, locate: () => undefined };

/** `scheduler.plugins[1].options.every` */
export function pathText(at: readonly Segment[]): string {
  let text = '';
  for (const segment of at) {
    if (typeof segment === 'number') text += `[${segment}]`;
    else if (/^[A-Za-z_$][\w$-]*$/.test(segment)) text += text === '' ? segment : `.${segment}`;
    else text += `[${JSON.stringify(segment)}]`;
  }
  return text === '' ? 'the configuration' : text;
}

/** One line: `cluster.yaml:4:14: scheduler.allowedFailures must be >= 0 (got -1)`. */
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
