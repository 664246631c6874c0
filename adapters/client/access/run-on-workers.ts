import {
  type ErrorPayload,
  type FunctionSpec,
  RemoteError,
  YardmasterError,
} from '../../../core/api/index.ts';
import {
  deserialise,
  isTaskFunction,
  type TaskFunction,
  travellingFunction,
} from '../../tasks/index.ts';
import { packTaskArguments } from '../submission/graph.ts';
import { uniqueKey } from '../submission/keys.ts';
import { checkNames, refuseOption } from '../submission/options.ts';

/** Where and how functions are run that are no tasks. */
export interface RunOptions<
  Place extends 'worker' | 'threads' = 'worker' | 'threads',
  Errors extends 'raise' | 'return' = 'raise' | 'return',
> {
  /** Addresses, names or hosts. Default: all workers. */
  readonly workers?: readonly string[];
  /** In the thread of the worker itself, or once in each of its threads for tasks. Default `worker`. */
  readonly place?: Place;
  /** `return` gives the errors in the place of results. Default `raise`: fails with the first. */
  readonly errors?: Errors;
  /** Milliseconds for each worker. Default: no limit. */
  readonly timeoutMs?: number;
}

/** The outcome of a run on one worker. */
export type RunOutcome<Result, Place, Errors> =
  ('threads' extends Place ? Result[] : Result) | ('return' extends Errors ? Error : never);

/** What a worker answers. */
interface RunReply {
  readonly results?: readonly { readonly value?: Uint8Array; readonly error?: ErrorPayload }[];
  readonly error?: string;
}

type Command = <T>(command: string, parameters: Readonly<Record<string, unknown>>) => Promise<T>;

/** Runs functions on workers, beside their tasks. `client.on(options)` makes one. */
export class WorkerRunner<
  Place extends 'worker' | 'threads' = 'worker',
  Errors extends 'raise' | 'return' = 'raise',
> {
  /** @internal */
  constructor(
    private readonly command: Command,
    private readonly options: RunOptions<Place, Errors>,
    private readonly codeRoot?: string,
  ) {
    checkNames(options, ['workers', 'place', 'errors', 'timeoutMs']);
    if (!['worker', 'threads', undefined].includes(options.place)) {
      refuseOption('place', options.place, 'worker or threads');
    }
    if (!['raise', 'return', undefined].includes(options.errors)) {
      refuseOption('errors', options.errors, 'raise or return');
    }
  }

  /**
   * Runs a function on each of the workers, at once and whatever they do. The results by address.
   *
   * @throws RemoteError what the function threw; `ERR_NO_WORKER` when there is no such worker
   * @throws YardmasterError `ERR_NOT_SERIALISABLE`, `ERR_FUNCTION_MISSING`
   */
  async run<Args extends readonly unknown[], Result>(
    fn: TaskFunction<Args, Result>,
    ...args: Args
  ): Promise<Map<string, RunOutcome<Awaited<Result>, Place, Errors>>> {
    if (!isTaskFunction(fn)) {
      throw new YardmasterError(
        'ERR_FUNCTION_MISSING',
        'only what defineTasks has given can be run on workers',
      );
    }
    const { workers, place = 'worker', errors = 'raise', timeoutMs } = this.options;
    const { name } = fn;
    const packed = packTaskArguments(name, args, () => undefined);
    const runSpec: FunctionSpec = { ...travellingFunction(fn, this.codeRoot), args: packed.bytes };
    const answers = await this.command<readonly (readonly [string, RunReply])[]>('broadcast', {
      method: 'run',
      parameters: { key: uniqueKey(name), runSpec, place },
      ...(workers === undefined ? {} : { workers }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    });
    const results = new Map<string, RunOutcome<Awaited<Result>, Place, Errors>>();
    for (const [address, reply] of answers) {
      const result = resultOf(address, name, reply);
      if (result instanceof Error && errors === 'raise') throw result;
      const isList = place === 'threads' || result instanceof Error;
      const outcome = isList ? result : (result as readonly unknown[])[0];
      results.set(address, outcome as RunOutcome<Awaited<Result>, Place, Errors>);
    }
    return results;
  }
}

function resultOf(address: string, name: string, reply: RunReply): unknown[] | Error {
  const { results, error } = reply;
  if (results === undefined) {
    const message = `"${name}" was not run on ${address}: ${error ?? 'it answered nothing'}`;
    return new YardmasterError('ERR_TIMEOUT', message, { worker: address });
  }
  const failed = results.find((result) => result.error !== undefined)?.error;
  if (failed !== undefined) {
    return new RemoteError({ ...failed, data: { ...failed.data, worker: address } });
  }
  return results.map(({ value }) => deserialise(value as Uint8Array));
}
