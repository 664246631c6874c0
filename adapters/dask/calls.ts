import { YardmasterError } from '../../core/api/index.ts';
import { pause } from '../../core/shared/timers.ts';
import { hostOf, nameOf } from './translate.ts';
import { asList, type Fields, isFields, Opaque } from './wire/codec.ts';
import type { DaskContext, DaskWorker } from './context.ts';
import { asPythonException, PythonError, PythonException } from './wire/py-errors.ts';

// Calls to workers and nannies on behalf of clients.

/** The treatment of a worker that does not answer, or answers with an exception. */
export type OnError = 'raise' | 'return' | 'return_pickle' | 'ignore';

/** A call to many. */
interface Broadcast {
  /** With `op`. */
  readonly msg: Fields;
  /** Default: all. */
  readonly workers?: readonly DaskWorker[];
  /** The nannies of the workers are meant. */
  readonly nanny?: boolean;
  readonly onError?: OnError;
}

const SILENT = Symbol('silent');

/**
 * Calls all at once. @returns the answers by address of the worker
 * @throws PythonError, YardmasterError unless `onError` says otherwise
 */
export async function broadcast(
  context: DaskContext,
  { msg, workers, nanny = false, onError = 'raise' }: Broadcast,
): Promise<Map<string, unknown>> {
  const { op, ...parameters } = msg;
  const asked = [...(workers ?? context.workers.values())];
  const answers = await Promise.all(
    asked.map(async (worker) => {
      const address = nanny ? worker.nanny : worker.address;
      if (address === undefined) return SILENT;
      try {
        return await context.pool.call(address, String(op), parameters);
      } catch (error) {
        return onBroadcastError(error, onError);
      }
    }),
  );
  const byAddress = new Map<string, unknown>();
  asked.forEach(({ address }, index) => {
    if (answers[index] !== SILENT) byAddress.set(address, answers[index]);
  });
  return byAddress;
}

function onBroadcastError(error: unknown, onError: OnError): unknown {
  switch (onError) {
    case 'ignore':
      return SILENT;
    case 'return':
      return (error as Error).message;
    case 'return_pickle':
      return pickleOf(error);
    case 'raise':
      throw error;
  }
}

/** The exception as a pickle: the peer's own where it sent one. */
function pickleOf(error: unknown): Uint8Array {
  if (error instanceof PythonError) {
    const { exception } = error.answer;
    if (exception instanceof Uint8Array) return exception;
    if (exception instanceof Opaque && exception.frames.length === 1) {
      return exception.frames[0] as Uint8Array;
    }
  }
  return asPythonException(error).pickled();
}

/** `on_error` of a request. @throws PythonException when it is not one of the four modes */
export function onErrorIn(request: Fields): OnError {
  const { on_error: given } = request;
  switch (given) {
    case undefined:
    case null:
      return 'raise';
    case 'raise':
    case 'return':
    case 'return_pickle':
    case 'ignore':
      return given;
    default:
      throw new PythonException(
        'ValueError',
        `on_error must be 'raise', 'return', 'return_pickle', or 'ignore'; got ${String(given)}`,
      );
  }
}

/**
 * The workers that a request names by address, name, (host, port), or host; undefined when it names none.
 * @throws PythonException `KeyError` for what means no worker
 */
export function workersIn(context: DaskContext, named: unknown): readonly DaskWorker[] | undefined {
  if (named === undefined || named === null) return undefined;
  const list = asList(named) ?? [named];
  const found = list.flatMap((which) => {
    const meant = workersMeant(context, which);
    return meant.length > 0 ? meant : [workerOf(context, which)];
  });
  return [...new Set(found)];
}

/** One worker, or all workers of the host of this name; empty when there is neither. */
export function workersMeant(context: DaskContext, which: unknown): readonly DaskWorker[] {
  const found = findWorker(context, which);
  return found === undefined ? workersOnHosts(context, [which]) : [found];
}

/** @throws PythonException `KeyError` when there is no such worker */
export function workerOf(context: DaskContext, which: unknown): DaskWorker {
  const found = findWorker(context, which);
  if (found !== undefined) return found;
  throw new PythonException('KeyError', addressText(which));
}

/** By address, name, or (host, port). */
function findWorker(context: DaskContext, which: unknown): DaskWorker | undefined {
  const { workers } = context;
  const text = addressText(which);
  const known = workers.get(text) ?? workers.get(`tcp://${text}`);
  if (known !== undefined) return known;
  for (const worker of workers.values()) {
    if (nameOf(worker.name, worker.address) === text) return worker;
  }
  return undefined;
}

function addressText(which: unknown): string {
  const pair = asList(which);
  if (pair !== undefined) return `tcp://${pair.map(String).join(':')}`;
  return String(which);
}

export function workersOnHosts(context: DaskContext, hosts: readonly unknown[]): DaskWorker[] {
  const wanted = new Set(hosts.map(String));
  return [...context.workers.values()].filter(({ address }) => wanted.has(hostOf(address)));
}

/** An answer that must be a map. @throws YardmasterError `ERR_PROTOCOL` */
export function fieldsOf(answer: unknown, what: string): Fields {
  if (isFields(answer)) return answer;
  throw new YardmasterError('ERR_PROTOCOL', `${what} gave an answer that is no map`, { what });
}

/** Waits. @throws YardmasterError `ERR_CLOSED` when the scheduler closes meanwhile */
export async function pauseMs({ clock, plugin }: DaskContext, ms: number): Promise<void> {
  const isClosing = await pause(clock, ms, plugin.signal);
  if (isClosing) throw new YardmasterError('ERR_CLOSED', 'the scheduler closes');
}
