import { YardmasterError } from '../../api/errors.ts';
import { type ConfigOrigin, type Problem, problemLine, type Segment } from '../../config/errors.ts';

/** Collects what is wrong with a configuration, so that all of it is reported at once. */
export class ProblemList {
  private readonly errors: unknown[] = [];

  constructor(private readonly origin: ConfigOrigin) {}

  get isEmpty(): boolean {
    return this.errors.length === 0;
  }

  /**
   * Runs one step. What it throws is kept, with the place in the configuration.
   * @param at - the entry that the step is about; undefined when the error says so itself
   * @returns undefined when it threw
   */
  async attempt<T>(
    at: readonly Segment[] | undefined,
    run: () => T | Promise<T>,
  ): Promise<T | undefined> {
    try {
      return await run();
    } catch (error) {
      this.errors.push(at === undefined ? error : placed(error, at, this.origin));
      return undefined;
    }
  }

  /**
   * @throws the error when there is one; `ERR_CONFIG` with the lines of all when there are several
   */
  throwIfAny(): void {
    const { errors } = this;
    if (errors.length === 0) return;
    if (errors.length === 1) throw errors[0];
    const lines = errors.flatMap(linesOf);
    const cause = errors.find((error) => !YardmasterError.is(error, 'ERR_CONFIG'));
    throw new YardmasterError(
      'ERR_CONFIG',
      `the configuration has ${lines.length} problems:\n${lines.join('\n')}`,
      { problems: lines.map((line) => ({ line: line.trim() })) },
      cause === undefined ? {} : { cause },
    );
  }
}

/** Says where in the configuration something was named that could not be loaded. */
function placed(error: unknown, at: readonly Segment[], origin: ConfigOrigin): unknown {
  if (!YardmasterError.is(error) || error.code === 'ERR_CONFIG') return error;
  if (typeof error.data['at'] === 'string') return error; // An inner step has said it more exactly.
  const problem: Problem = { at: [...at, 'use'], message: '' };
  const where = problemLine(problem, origin).trimEnd();
  const data = { ...error.data, at: where };
  return new YardmasterError(error.code, `${where}: ${error.message}`, data, { cause: error });
}

/** An `ERR_CONFIG` has a headline and indented lines. */
function linesOf(error: unknown): readonly string[] {
  const message = error instanceof Error ? error.message : String(error);
  const isList = YardmasterError.is(error, 'ERR_CONFIG') && message.includes('\n  ');
  return isList ? message.split('\n').slice(1) : [`  ${message}`];
}
