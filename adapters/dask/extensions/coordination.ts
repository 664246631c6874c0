/** How Dask's locks, queues, variables and the like reach those of the scheduler, which Node clients share. */
import { createHash } from 'node:crypto';

import { type Caller, YardmasterError } from '../../../core/api/index.ts';
import { inBackground } from '../../../core/shared/background.ts';
import { packArguments, unpackWith } from '../../tasks/index.ts';
import { Opaque, PyFloat } from '../codec/index.ts';
import { durationMs } from '../graph/unpacked.ts';
import type { DaskContext, Fields } from '../context.ts';
import { reprOf } from '../bridge/key-table.ts';
import { failureForClient } from '../rpc/py-failure.ts';
import { PythonException } from '../rpc/py-errors.ts';
import { isFields, numberIn } from '../codec/values.ts';

/**
 * The client of requests in which Dask names none. What is held under this name outlives every
 * client.
 */
const ANONYMOUS = 'dask';

/** Longer names, which Dask allows, are shortened: their beginning and a hash of all. */
const NAME_LENGTH_MAX = 1000;

/** Between two looks whether a task has become known. */
const LOOK_INTERVAL_MS = 10;

/** A value as the scheduler's coordination stores it. */
interface StoredValue {
  readonly value: Uint8Array;
  /** Of the futures in it. */
  readonly keys: readonly string[];
}

/**
 * A value that is handed over, with a number by which the receiver confirms that it holds the
 * value's futures.
 */
export interface GivenValue extends StoredValue {
  readonly handover?: number;
}

/** What Dask stores: a future, or plain data. */
type DaskRecord =
  | { readonly type: 'Future'; readonly value: string }
  | { readonly type: 'msgpack'; readonly value: unknown };

/** Stands for a future while a value is packed. */
class FutureMark {
  constructor(readonly key: string) {}
}

/** Calls of the plugin `coordination`, and the form in which both worlds keep their values there. */
export class Coordination {
  /** What Dask stored comes back as it was, also where Node has no such type. */
  private readonly originals = new WeakMap<Uint8Array, unknown>();

  constructor(readonly context: DaskContext) {}

  /**
   * @param client - id of the Dask client in whose name it is; what it holds ends with it
   * @throws YardmasterError as the command does
   */
  async call<T>(command: string, parameters: Fields, client?: unknown): Promise<T> {
    const { plugin, clients } = this.context;
    const known = typeof client === 'string' && clients.has(client);
    const caller: Caller = { client: known ? client : ANONYMOUS };
    return (await plugin.run(`coordination.${command}`, parameters, caller)) as T;
  }

  /** A call whose outcome the peer does not wait for; a failure is logged. Its message was not a request. */
  notify(command: string, parameters: Fields, client?: unknown): void {
    inBackground(this.call(command, parameters, client), (error) => {
      this.context.log.warn(
        { err: error, command, ...parameters },
        `coordination.${command} failed for a client of Dask: ${error.message}`,
      );
    });
  }

  /** A record as it is stored. Node clients read it as far as they have such values. */
  pack(record: DaskRecord): StoredValue {
    if (record.type === 'Future') {
      const { bytes, dependencies } = packArguments([new FutureMark(record.value)], (part) =>
        part instanceof FutureMark ? part.key : undefined,
      );
      return { value: bytes, keys: dependencies };
    }
    return { value: this.packData(record.value), keys: [] };
  }

  /**
   * Plain data, or what only Python can read.
   * @param shown - what Node clients get in its place; default: the value as far as they have such types
   */
  packData(value: unknown, shown: unknown = forNode(value)): Uint8Array {
    const { bytes } = packArguments([shown], () => undefined);
    this.originals.set(bytes, value);
    return bytes;
  }

  /** @throws PythonException `NotImplementedError` when a Node client stored futures among other data */
  unpack(given: GivenValue): DaskRecord {
    const value = this.unpackData(given);
    if (value instanceof FutureMark) return { type: 'Future', value: value.key };
    return { type: 'msgpack', value };
  }

  /** What was given to {@link packData}, or plain data of a Node client. */
  unpackData({ value: bytes, keys }: GivenValue): unknown {
    if (this.originals.has(bytes)) return this.originals.get(bytes);
    const [value] = unpackWith(bytes, (key) => new FutureMark(key));
    if (value instanceof FutureMark || keys.length === 0) return value;
    throw new PythonException(
      'NotImplementedError',
      'the value was stored by a client in JavaScript, with futures among other data; Dask can take plain data, or one future',
    );
  }

  /** Whether it was stored by a Dask client. */
  isOfDask({ value }: GivenValue): boolean {
    return this.originals.has(value);
  }

  /**
   * Resolves when the scheduler knows the task: a future may be stored before its graph has come.
   * @throws PythonException `TimeoutError`
   */
  async known(key: string, timeoutMs: number): Promise<void> {
    const { clock, cluster } = this.context;
    if (cluster.tasks.has(key)) return;
    await this.context.graphsSettled();
    const untilMs = clock.nowMs() + timeoutMs;
    while (!cluster.tasks.has(key)) {
      if (clock.nowMs() >= untilMs) {
        throw new PythonException('TimeoutError', `Task ${key} unknown to scheduler.`);
      }
      await new Promise<void>((resolve) => {
        clock.setTimer(LOOK_INTERVAL_MS, resolve);
      });
    }
  }

  /** As Dask hands it out: a future with its present state. */
  describe(record: DaskRecord): Fields {
    if (record.type === 'msgpack') return { ...record };
    const { cluster, keys } = this.context;
    const task = cluster.tasks.get(record.value);
    const value = keys.wireOf(record.value);
    if (task?.state !== 'erred') return { type: 'Future', value, state: task?.state ?? 'lost' };
    const blame = task.exceptionBlame ?? task;
    const failure = blame.failure;
    return {
      type: 'Future',
      value,
      state: 'erred',
      ...(failure === undefined ? {} : failureForClient(failure, blame.key, keys)),
    };
  }

  /** The record in a request: `key` of a future, or `data`. */
  async recordIn(request: Fields, patienceMs: number): Promise<DaskRecord> {
    const { key, data } = request;
    if (key === undefined || key === null) return { type: 'msgpack', value: data ?? null };
    const text = this.context.keys.textOf(key);
    await this.known(text, patienceMs);
    return { type: 'Future', value: text };
  }
}

/** A name, which Dask lets be anything that can be the key of a dict. */
export function nameIn(request: Fields, field = 'name'): string {
  const name = request[field];
  const text = typeof name === 'string' ? name : reprOf(name);
  if (text.length <= NAME_LENGTH_MAX) return text;
  return `${text.slice(0, 200)}…${createHash('sha256').update(text).digest('hex')}`;
}

/** Seconds of Python, or a text such as `5s`, as milliseconds; undefined: no limit. */
export function timeoutIn(request: Fields, field = 'timeout'): number | undefined {
  const text = request[field];
  if (typeof text === 'string') return Math.max(0, durationMs(text));
  const seconds = numberIn(request, field);
  return seconds === undefined || seconds === Infinity ? undefined : Math.max(0, 1000 * seconds);
}

/** Whether the wait took too long. */
export function isTimeout(error: unknown): boolean {
  return YardmasterError.is(error, 'ERR_TIMEOUT');
}

/**
 * The value with types of JavaScript. A value without such a type is replaced by an error that its
 * reader receives.
 */
function forNode(value: unknown): unknown {
  if (value instanceof PyFloat) return value.valueOf();
  if (Array.isArray(value)) return value.map(forNode);
  if (value instanceof Set) return new Set([...(value as Set<unknown>)].map(forNode));
  if (value instanceof Map) {
    return new Map([...(value as Map<unknown, unknown>)].map(([k, v]) => [forNode(k), forNode(v)]));
  }
  if (isFields(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, forNode(item)]));
  }
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
  const what = value instanceof Opaque ? 'an object of Python' : 'a value';
  return new Error(`${what} that a client of Dask stored; it cannot be read in JavaScript`);
}
