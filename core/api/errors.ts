import type { ErrorPayload } from '../messages/protocol.ts';
import { approximateBytes } from '../util/bytes.ts';
import { cut, wellFormed } from '../util/values.ts';

/**
 * Every code of an error that Yardmaster reports, with its meaning. See `docs/troubleshooting.md` for more.
 */
export const ERROR_CODES = {
  ERR_ACCESS: 'Credentials are missing, are not accepted, or do not permit what was asked.',
  ERR_ACTOR_LOST: 'The worker or thread of an actor is gone, and the state of the actor with it.',
  ERR_CANCELLED: 'The task was cancelled or its client went away.',
  ERR_CLOSED: 'The connection, client or cluster is closed.',
  ERR_CONFIG: 'The configuration is not valid.',
  ERR_CONNECT: 'The peer could not be reached.',
  ERR_COORDINATION: 'A lock, queue, data set or the like cannot do what was asked.',
  ERR_EXECUTOR: 'An executor cannot be used, or gave an answer that cannot be used.',
  ERR_FRAME: 'A frame on the wire is truncated, too large or not readable.',
  ERR_FUNCTION_MISSING: 'The module of a task does not exist or lacks the function.',
  ERR_FUNCTION_VERSION: 'The worker has another version of the module of a task.',
  ERR_GRAPH_CYCLE: 'The graph has a cycle.',
  ERR_GRAPH_INVALID: 'The graph is not well formed.',
  ERR_HOOK_ASYNC: 'A hook of a plugin returned a promise; hooks are synchronous.',
  ERR_INTERNAL: 'The scheduler failed at a task. This is a bug.',
  ERR_INVARIANT: 'The state of the scheduler is inconsistent. This is a bug.',
  ERR_JOURNAL:
    'The journal of a scheduler is in use, damaged, or cannot be written; or there is none.',
  ERR_KEY_TAKEN: 'The key stands for another value or computation already.',
  ERR_KILLED_WORKER: 'Workers died again and again while they processed the task.',
  ERR_LOG: 'A log or recording is damaged, foreign or cannot be written.',
  ERR_LOST: 'The scheduler does not know the task any more: it was away, or another one has come.',
  ERR_LOST_DEPENDENCY: 'A dependency is gone and cannot be computed again.',
  ERR_MODULE_REFUSED: 'The worker does not permit the module that a client names.',
  ERR_NO_WORKER: 'No worker came in time.',
  ERR_NOT_PORTABLE: 'A value cannot pass from one language to another.',
  ERR_NOT_SERIALISABLE: 'A value cannot be serialised.',
  ERR_OUT_OF_MEMORY:
    'The inputs of a task are larger than the memory of any worker, or a worker gave up at its memory limit.',
  ERR_PLUGIN_HOOK: 'A hook of a plugin threw.',
  ERR_PLUGIN_LOAD: 'A plugin could not be loaded.',
  ERR_PLUGIN_SETUP: 'A plugin failed to set up, start or close, or took too long.',
  ERR_POLICY: 'A policy threw or gave an answer that cannot be used.',
  ERR_PROTOCOL: 'The peer speaks another protocol or broke it.',
  ERR_PROVIDER: 'A collaborator of a host cannot be provided as asked.',
  ERR_QUEUE_FULL: 'As many calls wait or are open as may.',
  ERR_QUOTA: 'One peer wants more than it may take.',
  ERR_READ_ONLY: 'A plugin or policy tried to change what it may only read.',
  ERR_REFUSED: 'A plugin of the scheduler did not admit a graph.',
  ERR_REGISTRATION: 'The scheduler refused a worker or a client.',
  ERR_REPLAY: 'A replay needs a policy that the recording names, and that has to be given.',
  ERR_RESULT_STORE: 'Results cannot be kept, or one that was kept is gone.',
  ERR_RETIRE: 'A worker stays, because what it holds would be lost.',
  ERR_SLOT: 'A policy slot has no provider, or more than one.',
  ERR_TASK: 'A task threw.',
  ERR_TASK_TIMEOUT: 'A task did not end within its time.',
  ERR_TIMEOUT: 'Something took too long.',
  ERR_TRANSITION: 'A task cannot go from one state to the other. This is a bug.',
  ERR_UNREACHABLE: 'The inputs of the task could not be fetched from the workers that hold them.',
} as const;

/** One of the stable codes; `docs/troubleshooting.md` explains each. */
export type ErrorCode = keyof typeof ERROR_CODES;

const BRAND = Symbol.for('yardmaster.error');

/**
 * An error of the world, with a stable code and its facts as data.
 * The message says what happened, to which thing, and what to do.
 */
export class YardmasterError extends Error {
  readonly [BRAND] = true;

  constructor(
    readonly code: ErrorCode,
    message: string,
    /** The facts of the message as fields, for programs. */
    readonly data: Readonly<Record<string, unknown>> = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'YardmasterError';
  }

  /** Works across copies of this package, unlike `instanceof`. */
  static is(value: unknown, code?: ErrorCode): value is YardmasterError {
    if (typeof value !== 'object' || value === null || !(BRAND in value)) return false;
    return code === undefined || (value as YardmasterError).code === code;
  }
}

/** Depth of causes that are carried along. */
const CAUSES_MAX = 8;

/** Levels of nesting in the data of an error that are carried along. */
const DATA_DEPTH_MAX = 20;

/** Characters of a message, and of a stack, that are carried along; the scheduler keeps failures. */
const TEXT_LENGTH_MAX = 64 * 1024;

/** Characters of the name and the code of an error. */
const NAME_LENGTH_MAX = 1000;

/** Approximate bytes of all data of an error that are carried along. What does not fit is left out, and named. */
const DATA_BYTES_MAX = 1024 * 1024;

/** Turns whatever was thrown into something that can travel, whatever the codec, and whatever its size. Never throws. */
export function toErrorPayload(thrown: unknown, depth = 0): ErrorPayload {
  try {
    return payloadOf(thrown, depth);
  } catch (fault) {
    // A proxy, or a getter that throws.
    const [name, message, stack, code] = ['name', 'message', 'stack', 'code'].map((property) =>
      textOf(thrown, property),
    );
    return {
      name: name ?? 'Error',
      message:
        message ??
        `something was thrown that cannot be described (${textOf(fault, 'name')}: ${textOf(fault, 'message')})`,
      ...(stack === undefined ? {} : { stack }),
      ...(code === undefined ? {} : { code }),
      data: { notSent: textOf(fault, 'message') ?? 'it throws when it is inspected' },
    };
  }
}

/** The message of whatever was thrown. Never throws. */
export function messageOf(thrown: unknown): string {
  return toErrorPayload(thrown).message;
}

/** An error itself; what else was thrown becomes the message of one. Never throws. */
export function asError(thrown: unknown): Error {
  try {
    return thrown instanceof Error ? thrown : new Error(String(thrown), { cause: thrown });
  } catch {
    return new Error(messageOf(thrown), { cause: thrown }); // It throws when it is read.
  }
}

/**
 * Runs what an extension does, and names what it throws.
 * @param what - the subject of the message: `load() of plugin "p" threw`
 */
export async function named<T>(what: string, code: ErrorCode, run: () => T | Promise<T>) {
  try {
    return await run();
  } catch (cause) {
    if (YardmasterError.is(cause)) throw cause; // It says all that is needed.
    throw new YardmasterError(code, `${what}: ${messageOf(cause)}`, {}, { cause });
  }
}

function textOf(thrown: unknown, property: string): string | undefined {
  try {
    const value = (thrown as Record<string, unknown>)[property];
    return typeof value === 'string' ? cut(value, TEXT_LENGTH_MAX) : undefined;
  } catch {
    return undefined;
  }
}

/** Also of another realm, such as a context of `node:vm`. */
function isError(thrown: unknown): thrown is Error {
  return thrown instanceof Error || Object.prototype.toString.call(thrown) === '[object Error]';
}

function payloadOf(thrown: unknown, depth: number): ErrorPayload {
  if (!isError(thrown)) {
    const isSmall = approximateBytes(thrown, DATA_BYTES_MAX) <= DATA_BYTES_MAX;
    const text = describe(thrown);
    return {
      name: 'NonError',
      message: cut(`something that is not an Error was thrown: ${text}`, TEXT_LENGTH_MAX),
      data: { thrown: isSmall && isPlain(thrown) ? thrown : cut(text, TEXT_LENGTH_MAX) },
    };
  }
  const { code, cause } = thrown as { code?: unknown; cause?: unknown };
  const data = plainProperties(thrown);
  return {
    name: cut(thrown.name, NAME_LENGTH_MAX),
    message: cut(thrown.message, TEXT_LENGTH_MAX),
    ...(thrown.stack === undefined ? {} : { stack: stackOf(thrown.stack, thrown) }),
    ...(typeof code === 'string' ? { code: cut(code, NAME_LENGTH_MAX) } : {}),
    ...(cause === undefined || depth >= CAUSES_MAX
      ? {}
      : { cause: toErrorPayload(cause, depth + 1) }),
    ...(Object.keys(data).length === 0 ? {} : { data }),
  };
}

/**
 * The error as the far side knew it: class name, message, stack, code, causes and data. Its stack is that of the far
 * side; printed, it shows that once, the code and the data.
 */
export class RemoteError extends Error {
  declare readonly [BRAND]: true;
  readonly code: string;
  readonly data: Readonly<Record<string, unknown>>;

  constructor(payload: ErrorPayload) {
    super(
      payload.message,
      payload.cause === undefined ? {} : { cause: new RemoteError(payload.cause) },
    );
    Object.defineProperty(this, BRAND, { value: true });
    // As for errors of the language: what the stack begins with is not printed again.
    Object.defineProperty(this, 'name', {
      value: payload.name,
      configurable: true,
      writable: true,
    });
    this.code = payload.code ?? 'ERR_TASK';
    this.data = payload.data ?? {};
    if (payload.stack !== undefined) this.stack = payload.stack;
  }
}

/**
 * Own properties in forms that can travel; those of `data` one by one, so that one misfit costs no other. The errors of an
 * `AggregateError` are one of them, without their stacks.
 */
function plainProperties(error: Error & { errors?: unknown }): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  const tooLarge: string[] = [];
  let leftBytes = DATA_BYTES_MAX;
  const properties = Object.entries(error).flatMap(
    ([name, value]: readonly [string, unknown]): (readonly [string, unknown])[] => {
      if (name === 'code' || name === 'cause' || name === 'name') return [];
      return name === 'data' && isObject(value) ? Object.entries(value) : [[name, value]];
    },
  );
  if (Array.isArray(error.errors)) properties.push(['errors', error.errors]);
  for (const [name, given] of properties) {
    const value = travelling(given);
    if (value === undefined) continue;
    const nbytes = approximateBytes({ [name]: value }, leftBytes);
    if (nbytes > leftBytes) tooLarge.push(cut(name, NAME_LENGTH_MAX));
    else if (isPlain({ [name]: value })) {
      found[name] = value;
      leftBytes -= nbytes;
    }
  }
  if (tooLarge.length > 0) found['tooLarge'] = tooLarge.slice(0, 100);
  return found;
}

/** The nearest plain form of a value that has one: text of a bigint and of a date, a list of what a Map or a Set holds. */
function travelling(value: unknown): unknown {
  if (value instanceof Map || value instanceof Set) return [...value].map(travellingItem);
  return Array.isArray(value) ? value.map(travellingItem) : travellingItem(value);
}

/** Does not look into what it is given: that may contain itself. */
function travellingItem(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'NaN' : value.toISOString();
  if (!isError(value)) return value;
  const { name, message } = value;
  return { name: cut(name, NAME_LENGTH_MAX), message: cut(message, TEXT_LENGTH_MAX) };
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A value in at most 60 characters. */
export function briefly(value: unknown): string {
  const text = value === undefined ? 'nothing' : describe(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

/** True when it arrives anywhere as it is. */
export function isPlain(value: unknown, depth = 0): boolean {
  if (value === null || typeof value === 'boolean') return true;
  if (typeof value === 'string') return wellFormed(value) === value;
  if (typeof value === 'number') return !Number.isInteger(value) || Number.isSafeInteger(value);
  if (typeof value !== 'object' || depth >= DATA_DEPTH_MAX) return false;
  if (Array.isArray(value)) return value.every((item) => isPlain(item, depth + 1));
  if (Object.getPrototypeOf(value) !== Object.prototype) return false;
  return Object.entries(value).every(
    ([name, field]) =>
      isPlain(name) && name !== '__proto__' && (field === undefined || isPlain(field, depth + 1)),
  );
}

/** The stack with its frames, however long the message is that it begins with. */
function stackOf(stack: string, { name, message }: Error): string {
  if (stack.length <= TEXT_LENGTH_MAX) return wellFormed(stack);
  const framesAt = stack.indexOf('\n    at ', message.length);
  if (framesAt < 0) return cut(stack, TEXT_LENGTH_MAX);
  const title = `${cut(name, NAME_LENGTH_MAX)}: ${cut(message, TEXT_LENGTH_MAX)}`;
  return title + cut(stack.slice(framesAt), TEXT_LENGTH_MAX);
}

function describe(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(cut(value, TEXT_LENGTH_MAX));
  if (typeof value === 'function') return `function ${value.name || '(anonymous)'}`;
  try {
    const text: unknown = JSON.stringify(value, withoutCycles());
    return typeof text === 'string' ? text : String(value);
  } catch {
    return Object.prototype.toString.call(value);
  }
}

/** For JSON: what contains itself ends where it would begin again. */
function withoutCycles(): (this: unknown, key: string, value: unknown) => unknown {
  const above: unknown[] = [];
  return function (_key, value) {
    if (typeof value !== 'object' || value === null) return value;
    while (above.length > 0 && above.at(-1) !== this) above.pop();
    if (above.includes(value)) return '[Circular]';
    above.push(value);
    return value;
  };
}
