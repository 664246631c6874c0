import type { ErrorPayload, TaskFailure } from '../../../core/api/index.ts';
import type { Fields } from '../context.ts';
import type { KeyTable } from '../bridge/key-table.ts';
import { killedWorker, opaqueException, PythonException } from './py-errors.ts';
import { isFields } from '../codec/values.ts';

/** What a Dask worker reported of a failure: two values that only Python can read. */
interface PyFailure {
  readonly exception: unknown;
  /** None when there is none. */
  readonly traceback: unknown;
}

/** A symbol, because it does not travel: clients of Node get the text alone. */
const PYTHON = Symbol('failure of Python');

/** The failure of a task in a message of a Dask worker, as the scheduler keeps it. */
export function failureOf(report: Fields): TaskFailure {
  const exceptionText = textOr(report['exception_text'], 'the task failed');
  const tracebackText = textOr(report['traceback_text'], '');
  const python: PyFailure = {
    exception: report['exception'],
    traceback: report['traceback'] ?? null,
  };
  const payload: ErrorPayload = {
    ...named(exceptionText),
    ...(tracebackText === '' ? {} : { stack: `${exceptionText}\n${tracebackText}` }),
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

/** Why the inputs of a task are too large, in the words of Dask, for which programs look. */
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
