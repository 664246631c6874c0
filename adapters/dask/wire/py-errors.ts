import { type ErrorPayload, type TaskFailure, YardmasterError } from '../../../core/api/index.ts';
import type { KeyTable } from './key-table.ts';
import { encodeMessage, type Fields, isFields, Opaque } from './codec.ts';
import { Call, causesIn, Name, Tuple, writePickle } from './pickle.ts';

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

/** The error of a peer whose handler raised. */
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
  ERR_ACCESS: 'OSError',
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

/** The failure that a Dask worker reported: two values that only Python can read. */
interface PyFailure {
  readonly exception: unknown;
  /** None when there is none. */
  readonly traceback: unknown;
}

/** A symbol, because it does not travel: clients of Node get the text alone. */
const PYTHON = Symbol('failure of Python');

/** The failure of a task in a message of a Dask worker, as the scheduler keeps it. */
export function failureOf(report: Fields): TaskFailure {
  const raised = textOr(report['exception_text'], 'the task failed');
  const { exception: sent } = report;
  const causes = sent instanceof Opaque ? causesIn(Buffer.concat(sent.frames)) : [];
  const exceptionText = [raised, ...causes].join(', because ');
  const tracebackText = textOr(report['traceback_text'], '');
  const python: PyFailure = {
    exception: sent,
    traceback: report['traceback'] ?? null,
  };
  const payload: ErrorPayload = {
    ...named(raised),
    ...(tracebackText === '' ? {} : { stack: `${raised}\n${tracebackText}` }),
  };
  const exception = Object.assign(payload, { [PYTHON]: python });
  return { exception, traceback: undefined, exceptionText, tracebackText };
}

/** Name and message of an exception in the words of Python: `ValueError('no')`. */
function named(text: string): Pick<ErrorPayload, 'name' | 'message'> {
  const [, name, inner = ''] = /^([\w.]+)\((.*)\)$/s.exec(text) ?? [];
  if (name === undefined) return { name: 'Error', message: text };
  const [, , quoted] = /^(['"])(.*)\1$/s.exec(inner) ?? [];
  return { name, message: quoted ?? (inner === '' ? name : inner) };
}

/** A failure for a Dask client, from a Dask worker or a Node worker. */
export function failureForClient(
  { exception, exceptionText }: TaskFailure,
  blame: string,
  keys: KeyTable,
): { readonly exception: unknown; readonly traceback: unknown } {
  const python = (exception as { readonly [PYTHON]?: PyFailure } | undefined)?.[PYTHON];
  if (python !== undefined) return { exception: python.exception, traceback: python.traceback };
  const payload = isFields(exception) ? (exception as unknown as ErrorPayload) : undefined;
  const raised = exceptionOf(payload, exceptionText, blame, keys);
  return { exception: opaqueException(raised), traceback: null };
}

function exceptionOf(
  payload: ErrorPayload | undefined,
  text: string,
  blame: string,
  keys: KeyTable,
): PythonException {
  if (payload?.code === 'ERR_KILLED_WORKER') {
    const { lastWorker, allowedFailures } = payload.data ?? {};
    const address = textOr(lastWorker, '');
    const key = keys.wireOf(blame);
    const name = typeof key === 'string' ? key : blame;
    return killedWorker(name, { address, name: address }, Number(allowedFailures ?? 0));
  }
  if (payload?.code === 'ERR_GRAPH_CYCLE') {
    const cycle = (payload.data?.['cycle'] as readonly string[] | undefined) ?? [];
    const steps = cycle.map((key) => `\n  -> ${key}`).join('');
    return new PythonException(
      'RuntimeError',
      `Cycle detected between the following keys:${steps}`,
    );
  }
  if (payload?.code === 'ERR_OUT_OF_MEMORY') {
    return new PythonException('MemoryError', oversized(payload, keys) ?? text);
  }
  if (payload?.code === 'ERR_ACTOR_LOST') {
    return new PythonException('RuntimeError', `Worker holding Actor was lost: ${text}`);
  }
  const isError = payload !== undefined && payload.code === undefined;
  return new PythonException(
    'RuntimeError',
    isError ? `${payload.name}: ${payload.message}` : text,
  );
}

/** The reason why the inputs of a task are too large, in the words of Dask, for which programs look. */
function oversized({ data }: ErrorPayload, keys: KeyTable): string | undefined {
  const { key, inputBytes, worker, memoryLimitBytes, dependentCount } = data ?? {};
  if (typeof key !== 'string' || typeof inputBytes !== 'number') return undefined;
  const wire = keys.wireOf(key);
  const name = typeof wire === 'string' ? `'${wire}'` : key;
  const advice =
    dependentCount === 0
      ? ' It seems like you called client.compute() on a huge collection. Consider writing to distributed storage or slicing/reducing first.'
      : '';
  return (
    `Task ${name} has ${formatBytes(inputBytes)} worth of input dependencies, but worker ` +
    `${textOr(worker, '')} has memory_limit set to ${formatBytes(Number(memoryLimitBytes))}.${advice}`
  );
}

/** As `dask.utils.format_bytes`. */
function formatBytes(bytes: number): string {
  for (const [prefix, power] of [
    ['Pi', 50],
    ['Ti', 40],
    ['Gi', 30],
    ['Mi', 20],
    ['ki', 10],
  ] as const) {
    const unit = 2 ** power;
    if (bytes >= unit * 0.9) return `${(bytes / unit).toFixed(2)} ${prefix}B`;
  }
  return `${bytes} B`;
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === 'string' ? value : otherwise;
}
