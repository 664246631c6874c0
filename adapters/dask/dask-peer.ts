import {
  type Channel,
  type Clock,
  type Connection,
  type ConnectionHandlers,
  type GetDataReply,
  type Logger,
  messageOf,
  PROTOCOL,
  toErrorPayload,
  VERSION,
  type WireMessage,
  YardmasterError,
} from '../../core/api/index.ts';
import { sayHello } from '../../core/shared/channels.ts';
import { fetchData } from '../../core/shared/fetch-data.ts';
import { inBackground } from '../../core/shared/timers.ts';
import { isPlainObject } from '../../core/util/values.ts';
import { deserialise, refusalBytes, serialise, unpackWith } from '../tasks/index.ts';
import type { KeyTable } from './wire/key-table.ts';
import { asList, type Dialect, encodeMessage, entriesOf, isFields, Opaque } from './wire/codec.ts';
import { CommPool, openChannel } from './wire/comm-pool.ts';
import type { Comm } from './wire/comm.ts';
import { OWN_ADDRESSES } from './wire/wrong-port.ts';
import type { CallSpec } from './graph/index.ts';
import { isMarked, type PythonCall } from './wire/python.ts';
import { PythonError } from './wire/py-errors.ts';
import {
  argumentRefused,
  Call,
  Name,
  NotPortable,
  resultRefused,
  Tuple,
  type Way,
  writePickle,
} from './wire/pickle.ts';
import type { DaskPlugin } from './context.ts';
import { readValue, writeValue } from './values.ts';

/** A worker that sends too much already is asked again after this. */
const BUSY_PAUSE_MS = 100;

/** A worker that sends nothing for this long counts as gone. */
const ANSWER_TIMEOUT_MS = 60_000;

/** The options of reaching a Dask worker. */
interface DaskPeerOptions {
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** The error for requests other than those for results. */
  readonly refusal: Error;
}

/**
 * Connects with a Dask worker, and answers in its place as a worker of ours: `get-data` becomes its
 * `get_data`, and results are written anew. One that cannot be is given as its refusal.
 *
 * @throws YardmasterError `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_PROTOCOL`
 */
export async function connectDaskPeer(
  address: string,
  open: (connection: Connection) => ConnectionHandlers,
  options: DaskPeerOptions,
): Promise<Connection> {
  const { clock, timeoutMs } = options;
  const pool = new CommPool({ clock, timeoutMs });
  // Connects now, so that an unreachable peer is noticed before the first request.
  await pool.use(address, () => Promise.resolve());
  return new DaskPeer(address, pool, open, options);
}

class DaskPeer implements Connection {
  readonly bufferedBytes = 0;
  private readonly handlers: ConnectionHandlers;
  private isOver = false;

  constructor(
    readonly peerAddress: string,
    private readonly pool: CommPool,
    open: (connection: Connection) => ConnectionHandlers,
    private readonly options: DaskPeerOptions,
  ) {
    this.handlers = open(this);
  }

  send(...messages: readonly WireMessage[]): void {
    for (const message of messages) {
      // Answered in a microtask, because the caller is not ready for an answer within its call.
      if (message['op'] !== 'request') continue;
      queueMicrotask(() => inBackground(this.answer(message), (error) => this.end(error)));
    }
  }

  drained(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.end();
    return Promise.resolve();
  }

  abort(reason: Error): void {
    this.end(reason);
  }

  private end(error?: Error): void {
    if (this.isOver) return;
    this.isOver = true;
    this.pool.close();
    queueMicrotask(() => {
      this.handlers.onClose(error);
    });
  }

  private async answer({ id, method, parameters }: WireMessage): Promise<void> {
    let reply: WireMessage;
    try {
      const given = isFields(parameters) ? parameters : {};
      reply = { op: 'reply', id, ok: true, value: await this.value(String(method), given) };
    } catch (thrown) {
      if (!(thrown instanceof PythonError) && !YardmasterError.is(thrown, 'ERR_PROTOCOL')) {
        this.end(thrown as Error); // It is gone, or as good as gone.
        return;
      }
      reply = { op: 'reply', id, ok: false, error: toErrorPayload(thrown) };
    }
    if (!this.isOver) this.handlers.onMessages([reply]);
  }

  private value(method: string, parameters: WireMessage): unknown {
    if (method === 'get-data') return this.getData(parameters);
    if (method !== 'hello') throw this.unanswered(method);
    if (parameters['role'] !== 'peer') return this.refuse();
    return { protocol: PROTOCOL, version: VERSION, serverId: this.peerAddress };
  }

  /**
   * If the address is the Dask listener of a Yardmaster scheduler, the error names the addresses at
   * which that scheduler listens for its own peers.
   */
  private async refuse(): Promise<never> {
    const { peerAddress, pool, options } = this;
    const answer = await pool
      .call(peerAddress, OWN_ADDRESSES, {}, { timeoutMs: options.timeoutMs })
      .catch(() => undefined);
    const addresses = asList(answer)?.map(String);
    throw addresses === undefined ? options.refusal : wrongPortError(peerAddress, addresses);
  }

  private async getData({ keys, mayBeBusy }: WireMessage): Promise<GetDataReply> {
    const wanted = (asList(keys) ?? []).map(String);
    for (;;) {
      const answer = await this.pool.use(this.peerAddress, (comm) => ask(comm, wanted));
      if (answer['status'] === 'OK') return replyOf(answer['data']);
      if (mayBeBusy === true) return { keys: [], values: [], busy: true };
      await new Promise<void>((resolve) => {
        this.options.clock.setTimer(BUSY_PAUSE_MS, resolve);
      });
    }
  }

  private unanswered(method: string): YardmasterError {
    return new YardmasterError(
      'ERR_PROTOCOL',
      `${this.peerAddress} is a worker of Dask, which does not answer "${method}"; ask it through a client of Dask`,
      { method, worker: this.peerAddress },
    );
  }
}

function wrongPortError(address: string, addresses: readonly string[]): YardmasterError {
  const advice =
    addresses.length === 0
      ? 'this scheduler has no address for them: it listens for Dask only'
      : `connect to ${addresses.join(' or ')}`;
  return new YardmasterError(
    'ERR_PROTOCOL',
    `${address} is where the scheduler listens for workers and clients of Dask, not for those of Yardmaster; ${advice}`,
    { address, seems: 'Dask', addresses },
  );
}

async function ask(comm: Comm, keys: readonly string[]): Promise<WireMessage> {
  const answer = await comm.call('get_data', { keys, who: null }, { timeoutMs: ANSWER_TIMEOUT_MS });
  if (!isFields(answer))
    throw new YardmasterError('ERR_PROTOCOL', 'get_data was answered without results');
  // The worker counts what is on its way, and waits for this.
  if (answer['status'] === 'OK') comm.write('OK');
  return answer;
}

function replyOf(data: unknown): GetDataReply {
  const found = entriesOf(data).map(
    ([key, value]) => [String(key), bytesOf(String(key), value)] as const,
  );
  return { keys: found.map(([key]) => key), values: found.map(([, bytes]) => bytes) };
}

/** A result as Node workers keep it. */
function bytesOf(key: string, value: unknown): Uint8Array {
  try {
    if (!(value instanceof Opaque)) throw new NotPortable('a value without a header');
    return serialise(readValue(value));
  } catch (thrown) {
    return refusalBytes(refusalOf(thrown, key, ['Python', 'JavaScript']));
  }
}

/** A Dask worker that waits for results of another language. */
export interface WaitingWorker {
  readonly address: string;
  /** Fails a task that was sent there, and has the worker forget it. */
  failTask(key: string, runId: number, error: YardmasterError): void;
}

/** The outcome of a request for results. */
export interface Relayed {
  /** As workers of Dask read them. */
  readonly values: ReadonlyMap<string, Opaque>;
  /** Those that have no equal in Python. */
  readonly refused: ReadonlyMap<string, YardmasterError>;
}

/**
 * Gives results of Node workers to Dask's workers and clients, which reach it where they reach the
 * scheduler: it fetches them, and writes them anew for Python. What cannot be written fails the tasks
 * that wait for it.
 */
export class Relay {
  private channel: Promise<Channel> | undefined;
  /** By worker and key of the result: the runs that wait for it. */
  private readonly waiting = new Map<string, Map<string, Map<string, number>>>();

  constructor(
    private readonly plugin: DaskPlugin,
    private readonly log: Logger,
    private readonly isDaskWorker: (address: string) => boolean,
    private readonly address: () => string,
  ) {}

  /** The addresses at which a peer of Dask finds what these workers hold. */
  sourcesOf(holders: readonly string[]): readonly string[] {
    return this.isForeign(holders) ? [this.address()] : holders;
  }

  /** True when only workers of another language hold it. */
  isForeign(holders: readonly string[]): boolean {
    const [first] = holders;
    return first !== undefined && !this.isDaskWorker(first);
  }

  /** A task was sent to a worker that has to fetch these. */
  expect(worker: WaitingWorker, task: string, runId: number, keys: readonly string[]): void {
    let ofWorker = this.waiting.get(worker.address);
    if (ofWorker === undefined)
      this.waiting.set(worker.address, (ofWorker = new Map<string, Map<string, number>>()));
    for (const key of keys) {
      const runs = ofWorker.get(key);
      if (runs === undefined) ofWorker.set(key, new Map([[task, runId]]));
      else runs.set(task, runId);
    }
  }

  /** True when tasks on the worker wait for the result. */
  isAwaited(worker: string, key: string): boolean {
    return this.waiting.get(worker)?.has(key) === true;
  }

  /** The task is not there any more. O(results that the worker waits for). */
  forget(worker: string, task: string): void {
    const ofWorker = this.waiting.get(worker);
    if (ofWorker === undefined) return;
    for (const [key, runs] of ofWorker) {
      if (runs.delete(task) && runs.size === 0) ofWorker.delete(key);
    }
    if (ofWorker.size === 0) this.waiting.delete(worker);
  }

  /** The worker has left. */
  dropWorker(address: string): void {
    this.waiting.delete(address);
  }

  /** Fails what waits there for results that cannot come. */
  refuse(worker: WaitingWorker, refused: ReadonlyMap<string, YardmasterError>): void {
    for (const [key, error] of refused) {
      const runs = [...(this.waiting.get(worker.address)?.get(key) ?? [])];
      for (const [task, runId] of runs) worker.failTask(task, runId, error);
    }
  }

  /**
   * Fetches results. Results without a holder are left out.
   * @throws YardmasterError `ERR_CLOSED`
   */
  async fetch(keys: readonly string[]): Promise<Relayed> {
    const channel = await this.open();
    const options = { method: 'gather', timeoutMs: ANSWER_TIMEOUT_MS } as const;
    const found = await fetchData(channel, keys, options);
    const values = new Map<string, Opaque>();
    const refused = new Map<string, YardmasterError>();
    for (const [key, bytes] of found.values) {
      try {
        values.set(key, writeValue(deserialise(bytes)));
      } catch (thrown) {
        refused.set(key, refusalOf(thrown, key, ['JavaScript', 'Python']));
        this.log.debug({ err: thrown, key }, `"${key}" cannot pass to Python`);
      }
    }
    return { values, refused };
  }

  close(): void {
    const reason = new YardmasterError('ERR_CLOSED', 'the scheduler closes');
    this.channel?.then(
      (channel) => channel.abort(reason),
      () => undefined, // The caller of `open` has received the error.
    );
  }

  /** A connection to the own scheduler, which fetches on behalf of those that cannot. */
  private open(): Promise<Channel> {
    this.channel ??= this.connect();
    return this.channel;
  }

  private async connect(): Promise<Channel> {
    const channel = openChannel(this.plugin, {
      onMessage: () => undefined,
      onRequest: (method) => {
        throw new YardmasterError('ERR_PROTOCOL', `the relay does not answer "${method}"`);
      },
      onClose: () => (this.channel = undefined),
    });
    await sayHello(channel, 'peer');
    return channel;
  }
}

function refusalOf(thrown: unknown, key: string, way: Way): YardmasterError {
  if (thrown instanceof NotPortable) return resultRefused(thrown, key, way);
  if (YardmasterError.is(thrown)) return thrown;
  return new YardmasterError(
    'ERR_NOT_PORTABLE',
    `the result of "${key}" is unreadable: ${messageOf(thrown)}`,
    { key },
    { cause: thrown },
  );
}

// Tasks of Python that clients of Node have submitted.

/** Stands for the result of a task among the arguments. */
class Input {
  constructor(readonly key: string) {}
}

/**
 * The run specification for a Dask worker of this release.
 * @throws YardmasterError `ERR_NOT_PORTABLE` when an argument has no equivalent in Python,
 *   `ERR_GRAPH_INVALID` when it cannot be distinguished from a key, `ERR_TASK` when the release
 *   cannot be served
 */
export function pythonRunSpec(
  key: string,
  call: PythonCall,
  dialect: Dialect,
  keys: KeyTable,
): Opaque | CallSpec {
  const args = unpackWith(call.args, (input) => new Input(input));
  const last = args.at(-1);
  const hasNamed = isMarked(last, 'keywords');
  const named = hasNamed ? last.values : {};
  const positional = hasNamed ? args.slice(0, -1) : args;
  const called = new Name(call.module, call.name);
  try {
    if (dialect.hasTaskSpecs) return taskSpec(key, called, positional, named, keys);
    if (!dialect.hasOnlyRunSpecs) return callSpec(key, called, positional, named, keys);
  } catch (thrown) {
    if (!(thrown instanceof NotPortable)) throw thrown;
    throw argumentRefused(thrown, key, ['JavaScript', 'Python']);
  }
  throw new YardmasterError(
    'ERR_TASK',
    `"${key}" is a function of Python, which workers with Dask ${dialect.version} cannot be given from Node; use 2024.12 or later`,
    { key, version: dialect.version },
  );
}

/**
 * `Task(key, apply, function, arguments, named arguments)`; since 2024.12. Workers read it as soon as it
 * comes, and would close if that failed: what may fail, imports above all, is left to the run.
 */
function taskSpec(
  key: string,
  called: Name,
  args: readonly unknown[],
  named: Readonly<Record<string, unknown>>,
  keys: KeyTable,
): Opaque {
  const hasInputs = once((value): boolean => {
    let isFound = value instanceof Input;
    mapMembers(value, (member) => {
      isFound ||= hasInputs(member);
      return member;
    });
    return isFound;
  });
  const parsed = once((value): unknown => {
    if (value instanceof Input) return new Call(TASK_REF, [keys.wireOf(value.key)]);
    if (!hasInputs(value)) return isHarmless(value) ? value : later(value);
    return new Call(PARSE_INPUT, [mapMembers(value, parsed)]);
  });
  const parts = [APPLY, later(called), parsed([...args]), parsed({ ...named })];
  const { bytes } = writePickle(new Call(TASK, [keys.wireOf(key), ...parts]), false);
  const header = encodeMessage({ 'pickled-obj': bytes, compression: [], 'num-sub-frames': 0 });
  return new Opaque('pickled', header[0] as Uint8Array, []);
}

/** A part of a task that is read when the task runs. */
function later(value: unknown): Call {
  return new Call(TASK, [null, LOADS, Buffer.from(writePickle(value, false).bytes)]);
}

function isHarmless(value: unknown): boolean {
  return typeof value !== 'object' || value === null;
}

/** Takes a step once for each object, so that parts of a value that are shared take their time once and stay shared. */
function once<T>(step: (value: unknown) => T): (value: unknown) => T {
  const done = new Map<unknown, T>();
  return (value) => {
    if (isHarmless(value)) return step(value);
    if (!done.has(value)) done.set(value, step(value));
    return done.get(value) as T;
  };
}

/** Function and arguments apart; keys among the arguments stand for results. Before 2023.8.1. */
function callSpec(
  key: string,
  called: Name,
  args: readonly unknown[],
  named: Readonly<Record<string, unknown>>,
  keys: KeyTable,
): CallSpec {
  const inputs = new Set<string>();
  const reference = (input: Input): unknown => {
    inputs.add(input.key);
    return new KeyText(String(keys.wireOf(input.key)));
  };
  const fill = once((value): unknown =>
    value instanceof Input ? reference(value) : mapMembers(value, fill),
  );
  const filled = args.map(fill);
  const filledNamed = fill({ ...named });
  const plain = once((value): unknown => mapMembers(keyText(value, inputs, key), plain));
  const bytesOf = (value: unknown): Uint8Array => writePickle(value, false).bytes;
  return {
    function: bytesOf(called),
    args: bytesOf(new Tuple(filled.map(plain))),
    kwargs: bytesOf(plain(filledNamed)),
  };
}

/** A key, which is a text like others for Dask of that time. */
class KeyText {
  constructor(readonly text: string) {}
}

/** A key becomes a text. @throws YardmasterError when another text would be taken for one of them */
function keyText(value: unknown, inputs: ReadonlySet<string>, key: string): unknown {
  if (value instanceof KeyText) return value.text;
  if (typeof value === 'string' && inputs.has(value)) {
    throw new YardmasterError(
      'ERR_GRAPH_INVALID',
      `an argument of "${key}" is the text "${value}", which is also the key of one of its inputs; workers with this Dask release cannot distinguish them`,
      { key, argument: value },
    );
  }
  return value;
}

/** Applies a step to the members of arrays, Maps and plain objects; the very same when all stay. */
function mapMembers(value: unknown, step: (member: unknown) => unknown): unknown {
  if (Array.isArray(value)) {
    const items = value.map(step);
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  if (value instanceof Map) {
    const entries = [...(value as Map<unknown, unknown>)];
    const mapped = entries.map(([key, member]) => [step(key), step(member)] as const);
    const isSame = mapped.every(([key, member], index) => {
      return key === entries[index]?.[0] && member === entries[index]?.[1];
    });
    return isSame ? value : new Map(mapped);
  }
  if (!isPlainObject(value)) return value;
  const entries = Object.entries(value);
  const mapped = entries.map(([name, member]) => [name, step(member)] as const);
  const isSame = mapped.every(([name, member]) => member === value[name]);
  return isSame ? value : Object.fromEntries(mapped);
}

const TASK = new Name('dask._task_spec', 'Task');
const TASK_REF = new Name('dask._task_spec', 'TaskRef');
const LOADS = new Name('pickle', 'loads');
const PARSE_INPUT = new Name('dask._task_spec', 'parse_input');
const APPLY = new Name('dask.utils', 'apply');
