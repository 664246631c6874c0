import { YardmasterError } from '../../core/api/index.ts';

/** An object of JSON. */
export type Plain = Readonly<Record<string, unknown>>;

/** The parts of a file with a graph. An error names the file and the place in it. */
export class GraphFile {
  constructor(readonly source: string) {}

  json(text: string): unknown {
    try {
      return JSON.parse(text);
    } catch (cause) {
      throw this.error('is no JSON', { cause });
    }
  }

  object(given: unknown, place: string): Plain {
    if (typeof given === 'object' && given !== null && !Array.isArray(given)) return given as Plain;
    throw this.error(`has no object at ${place}`, { field: place });
  }

  list(given: unknown, place: string): readonly unknown[] {
    if (Array.isArray(given)) return given;
    throw this.error(`has no list at ${place}`, { field: place });
  }

  text(given: unknown, place: string): string {
    if (typeof given === 'string' && given !== '') return given;
    throw this.error(`has no text at ${place}`, { field: place });
  }

  /** A duration or a size. */
  amount(given: unknown, field: string, subject: string): number {
    if (typeof given === 'number' && given >= 0 && given < Infinity) return given;
    throw this.error(
      `has the ${field} ${JSON.stringify(given)} for ${subject}; it must be a number, 0 or more`,
      { field, subject },
    );
  }

  error(
    what: string,
    { cause, ...data }: { readonly cause?: unknown; readonly [field: string]: unknown } = {},
  ): YardmasterError {
    const { source } = this;
    const options = cause === undefined ? {} : { cause };
    const message = `${source} ${what}`;
    return new YardmasterError('ERR_GRAPH_INVALID', message, { source, ...data }, options);
  }
}
