import { YardmasterError } from '../../../core/api/index.ts';
import { encodeMessage, Opaque } from '../codec/index.ts';
import { Call, Name, Tuple, writePickle } from '../interop/write-pickle.ts';

/** Exceptions that every peer knows, with the module of each. The names hold for Python 3.8 and later. */
const MODULES = {
  AttributeError: 'builtins',
  CancelledError: 'concurrent.futures._base',
  Exception: 'builtins',
  IndexError: 'builtins',
  KeyError: 'builtins',
  KilledWorker: 'distributed.scheduler',
  MemoryError: 'builtins',
  NotImplementedError: 'builtins',
  OSError: 'builtins',
  P2PConsistencyError: 'distributed.shuffle._exceptions',
  RuntimeError: 'builtins',
  TimeoutError: 'asyncio.exceptions',
  TypeError: 'builtins',
  ValueError: 'builtins',
} as const;

/** Name of an exception of Python. */
type PythonExceptionName = keyof typeof MODULES;

/** Thrown by a handler, it is raised in the peer as that exception of Python. */
export class PythonException extends Error {
  constructor(
    readonly type: PythonExceptionName,
    /** Arguments of its constructor; a string is the one of a usual exception. */
    args: string | readonly unknown[] = [],
    options?: ErrorOptions,
  ) {
    const list = typeof args === 'string' ? [args] : args;
    super(list.map(String).join(', '), options);
    this.name = type;
    this.args = list;
  }

  readonly args: readonly unknown[];

  /** The pickled exception. */
  pickled(): Uint8Array {
    const { type, args } = this;
    return writePickle(new Call(new Name(MODULES[type], type), args.map(argumentOf)), false).bytes;
  }
}

/** Arrays are tuples, as in keys; half a surrogate pair in a message is replaced. */
function argumentOf(value: unknown): unknown {
  if (Array.isArray(value)) return new Tuple(value.map(argumentOf));
  return typeof value === 'string' ? Buffer.from(value, 'utf8').toString('utf8') : value;
}

/** What a peer answered instead of a result: its handler raised. */
export class PythonError extends Error {
  constructor(
    message: string,
    /** The answer as it came, so that it can be passed on. */
    readonly answer: Readonly<Record<string, unknown>>,
  ) {
    super(message);
    this.name = 'PythonError';
  }
}

/**
 * @param where - the op and the peer, for the message
 * @throws PythonError when the answer of a call is an exception
 */
export function throwIfUncaught(answer: unknown, where: string): void {
  if (typeof answer !== 'object' || answer === null) return;
  const fields = answer as Readonly<Record<string, unknown>>;
  if (fields['status'] !== 'uncaught-error') return;
  const text = fields['exception_text'];
  throw new PythonError(
    `${where} raised ${typeof text === 'string' ? text : 'an exception'}`,
    fields,
  );
}

/** The answer of an RPC whose handler threw. */
export function uncaughtAnswer(thrown: unknown): Readonly<Record<string, unknown>> {
  if (thrown instanceof PythonError) return thrown.answer;
  const exception = asPythonException(thrown);
  return {
    status: 'uncaught-error',
    exception: exception.pickled(),
    traceback: null,
    exception_text: reprOf(exception),
    traceback_text: '',
  };
}

/** Converts a thrown value into the closest exception of Python. */
export function asPythonException(thrown: unknown): PythonException {
  if (thrown instanceof PythonException) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  const code = YardmasterError.is(thrown) ? thrown.code : undefined;
  return new PythonException(TYPES[code ?? ''] ?? 'RuntimeError', message, { cause: thrown });
}

const TYPES: Readonly<Record<string, PythonExceptionName | undefined>> = {
  ERR_TIMEOUT: 'TimeoutError',
  ERR_NO_WORKER: 'TimeoutError',
  ERR_CANCELLED: 'CancelledError',
  ERR_CLOSED: 'OSError',
  ERR_CONNECT: 'OSError',
  ERR_GRAPH_INVALID: 'ValueError',
  ERR_GRAPH_CYCLE: 'ValueError',
};

/** As a value in a message of the stream (`exception` of `task-erred`), which the client unpickles. */
export function opaqueException(exception: PythonException): Opaque {
  return opaquePickle(exception.pickled());
}

/** A pickle as peers send their own values. */
function opaquePickle(bytes: Uint8Array): Opaque {
  return new Opaque('serialized', PICKLE_HEADER, [bytes]);
}

const PICKLE_HEADER = encodeMessage({
  serializer: 'pickle',
  writeable: [],
  compression: [null],
  'num-sub-frames': 1,
})[0] as Uint8Array;

/**
 * The task was on workers that died again and again.
 * @param lastWorker - the last one; peers show its address
 */
export function killedWorker(
  task: unknown,
  lastWorker: { readonly address: string; readonly name: string } | undefined,
  allowedFailures: number,
): PythonException {
  const worker =
    lastWorker === undefined
      ? null
      : new Call(new Name('types', 'SimpleNamespace'), [], { ...lastWorker });
  return new PythonException('KilledWorker', [task, worker, allowedFailures]);
}

function reprOf({ type, args }: PythonException): string {
  return `${type}(${args.map((arg) => JSON.stringify(arg)).join(', ')})`;
}
