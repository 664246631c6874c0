import { randomUUID } from 'node:crypto';
import { inspect } from 'node:util';
import { type ExecutionResult, RemoteError, YardmasterError } from '../../core/api/index.ts';
import { typeName } from '../../core/util/values.ts';
import { packArguments, unpackWith } from './arguments.ts';
import { callInTask, contextOf, describeFailure, type RunContext } from './context.ts';
import { ScatteredValue } from './pieces.ts';
import { deserialise, serialise } from './serialise.ts';

/**
 * An object that lives on a worker, as others see it. Calling a method gives a promise of what it
 * returns; a property is read when it is awaited, and cannot be written.
 */
export type ActorHandle<T extends object> = {
  readonly [Name in Exclude<keyof T, 'then' | symbol>]: T[Name] extends (
    ...args: infer Args
  ) => infer Returned
    ? (...args: Args) => Promise<Awaited<Returned>>
    : PromiseLike<Awaited<T[Name]>>;
} & {
  /** Releases the actor. It ends when its last handle is released or collected. */
  [Symbol.dispose](): void;
};

/** One call, as it travels. */
export interface ActorRequest {
  readonly member: string;
  /** Serialised; undefined: reads the property. */
  readonly args?: Uint8Array;
  /** The actors whose handles are among the arguments. */
  readonly actors?: readonly ActorDescription[];
}

/** The way from a handle to its actor. */
export interface ActorCaller {
  /**
   * The serialised answer. Requests arrive in the order in which they are made.
   * @throws RemoteError what the method threw
   * @throws YardmasterError `ERR_ACTOR_LOST`, `ERR_CLOSED`
   */
  send(actor: ActorDescription, request: ActorRequest): Promise<Uint8Array>;
  /** True when shared memory in arguments stays shared on the way to every actor. Default false: it is copied. */
  readonly sharesMemory?: boolean;
  /** The caller of handles that are made for what an actor answers or is given. */
  release?(): void;
}

/** The actor behind a handle. */
interface ActorLink {
  readonly description: ActorDescription;
  readonly caller: ActorCaller;
}

const LINK = Symbol.for('yardmaster.actor');

/** The actor behind a value that is a handle, also of another copy of this package. */
export function actorBehind(value: unknown): ActorLink | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  return (value as { readonly [LINK]?: ActorLink })[LINK];
}

/** A result in the form that its reader gets: a value, or the handle of an actor. */
export function readResult(
  given: Uint8Array | ScatteredValue,
  callerFor: () => ActorCaller,
): unknown {
  const description = readActor(given instanceof ScatteredValue ? given.bytes : given);
  if (description === undefined) return deserialise(given);
  return makeHandle({ description, caller: callerFor() });
}

function makeHandle(link: ActorLink): ActorHandle<object> {
  const { description } = link;
  const name = `<Actor ${description.type} ${description.key}>`;
  const members = new Map<string | symbol, unknown>([
    [LINK, link],
    // An async function may return a handle.
    ['then', undefined],
    ['toJSON', undefined],
    ['toString', () => name],
    [Symbol.toStringTag, 'Actor'],
    [Symbol.dispose, () => link.caller.release?.()],
  ]);
  for (const method of description.methods) {
    if (method === 'then') continue;
    members.set(method, (...args: unknown[]) => call(link, method, args));
  }
  // Inspecting the proxy shows this name.
  const shown = { [inspect.custom]: () => name } as unknown as ActorHandle<object>;
  return new Proxy(shown, {
    get: (_target, member) => {
      if (members.has(member) || typeof member === 'symbol') return members.get(member);
      return new ActorProperty(() => read(link, member));
    },
    set: (_target, member) => {
      throw new TypeError(`${String(member)} of ${name} cannot be set from afar; call a method`);
    },
  });
}

async function call({ description, caller }: ActorLink, member: string, given: unknown[]) {
  const actors: ActorDescription[] = [];
  const keyOf = (value: unknown): string | undefined => {
    const other = actorBehind(value)?.description;
    if (other !== undefined) actors.push(other);
    else if (isFuture(value)) refuseFuture(description, member);
    return other?.key;
  };
  const { bytes: args } = packArguments(given, keyOf, undefined, caller.sharesMemory);
  const others = actors.length === 0 ? {} : { actors };
  return deserialise(await caller.send(description, { member, args, ...others }));
}

async function read({ description, caller }: ActorLink, member: string): Promise<unknown> {
  return deserialise(await caller.send(description, { member }));
}

/** Anything that has a result and a key: futures of all copies of this package. */
function isFuture(value: unknown): boolean {
  const { key, result } = value as { readonly key?: unknown; readonly result?: unknown };
  return typeof key === 'string' && typeof result === 'function';
}

function refuseFuture({ type }: ActorDescription, member: string): never {
  throw new YardmasterError(
    'ERR_GRAPH_INVALID',
    `a future is no argument for ${type}.${member}(): await its result first`,
    { member },
  );
}

/** Reads the property when it is awaited, so that inspecting a handle sends no request. */
class ActorProperty implements PromiseLike<unknown> {
  constructor(private readonly read: () => Promise<unknown>) {}

  then<A, B>(
    onValue?: ((value: unknown) => A | PromiseLike<A>) | null,
    onError?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.read().then<A, B>(onValue, onError);
  }
}

/** The description of an actor that others hold: its worker and its methods. */
export interface ActorDescription {
  /** Of the task that made it. */
  readonly key: string;
  /** Of the worker that it lives on. */
  readonly worker: string;
  /** Name of its class. */
  readonly type: string;
  readonly methods: readonly string[];
}

/** The format of values begins with 0xFF, so no value can be mistaken for a description. */
const MARK = new TextEncoder().encode('ymactor1');

/** As the result of the task that made the actor. */
export function serialiseActor(actor: ActorDescription): Uint8Array {
  const body = serialise(actor);
  const bytes = new Uint8Array(MARK.length + body.length);
  bytes.set(MARK);
  bytes.set(body, MARK.length);
  return bytes;
}

/** Undefined when the bytes are those of an ordinary value. Eight comparisons at most. */
function readActor(bytes: Uint8Array): ActorDescription | undefined {
  for (let index = 0; index < MARK.length; index++) {
    if (bytes[index] !== MARK[index]) return undefined;
  }
  return deserialise(bytes.subarray(MARK.length)) as ActorDescription;
}

/** An actor in this very thread, outside of any cluster: its handle works like every other. */
export function localActor(object: object): ActorHandle<object> {
  const key = `local-${randomUUID()}`;
  const context = contextOf(key, {});
  const nowMs = (): number => performance.now();
  const actor = new ActorObject(object, { context, nowMs, callerFor: callerIn(context) });
  const { type, methods } = actor;
  return makeHandle({
    description: { key, worker: 'here', type, methods },
    caller: {
      send: async (_description, request) => {
        const result = await actor.call(request);
        if (result.kind === 'success') return result.value;
        throw result.kind === 'failure' ? new RemoteError(result.error) : new Error(result.kind);
      },
    },
  });
}

/** Makes what the handles reach their actors by that a task, or an actor, has received. */
export function callerIn(context: RunContext): () => ActorCaller {
  return () => {
    const { surroundings, key } = context;
    if (surroundings !== undefined) return surroundings.actorCaller(context);
    const message = `"${key}" has a handle of an actor, but what runs it knows of no cluster`;
    return { send: () => Promise.reject(new YardmasterError('ERR_TASK', message, { key })) };
  };
}

type Members = Readonly<Record<string, unknown>>;

interface ActorSettings {
  /** Of the task that made it. */
  readonly context: RunContext;
  readonly nowMs: () => number;
  /** For handles of other actors among the arguments. */
  readonly callerFor: () => ActorCaller;
}

/**
 * An object whose methods are called remotely. Calls begin in the order of arrival; a call that
 * waits delays the next one, unless its class has a static `concurrentCalls` above 1.
 */
export class ActorObject {
  readonly methods: readonly string[];
  private readonly callsMax: number;
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(
    private readonly object: object,
    private readonly settings: ActorSettings,
  ) {
    this.methods = methodsOf(object);
    this.callsMax = concurrentCallsOf(object);
  }

  get type(): string {
    return typeName(this.object);
  }

  /** Never rejects. */
  async call(request: ActorRequest): Promise<ExecutionResult> {
    if (this.running >= this.callsMax) {
      await new Promise<void>((resolve) => this.waiting.push(resolve));
    } else this.running++;
    try {
      return await this.perform(request);
    } catch (thrown) {
      return { kind: 'failure', error: describeFailure(thrown) };
    } finally {
      const next = this.waiting.shift();
      if (next === undefined) this.running--;
      else next();
    }
  }

  private async perform({ member, args, actors = [] }: ActorRequest): Promise<ExecutionResult> {
    const { context, nowMs, callerFor } = this.settings;
    const startMs = nowMs();
    const result: unknown = await callInTask(context, () => {
      if (args === undefined) return this.read(member);
      const given = unpackWith(args, (key) => {
        const description = actors.find((actor) => actor.key === key);
        if (description !== undefined) return makeHandle({ description, caller: callerFor() });
        const message = `the call of "${member}" came without what describes "${key}"`;
        throw new YardmasterError('ERR_PROTOCOL', message, { key, member });
      });
      return this.method(member)(...given);
    });
    const value = serialise(result, 'result', undefined, true);
    return { kind: 'success', value, type: typeName(result), startMs, stopMs: nowMs() };
  }

  private method(member: string): (...args: unknown[]) => unknown {
    const found = (this.object as Members)[member];
    if (typeof found === 'function' && this.methods.includes(member)) {
      return (...args) => (found as (...args: unknown[]) => unknown).apply(this.object, args);
    }
    throw this.missing(`method "${member}"; it has ${this.methods.join(', ') || 'none'}`);
  }

  private read(member: string): unknown {
    const { object } = this;
    if (member in object && !(member in Object.prototype)) return (object as Members)[member];
    throw this.missing(`property "${member}"`);
  }

  private missing(what: string): YardmasterError {
    return new YardmasterError('ERR_FUNCTION_MISSING', `${this.type} has no ${what}`);
  }
}

/** Of its class and those above, and functions that it has itself. */
function methodsOf(object: object): string[] {
  const methods = new Set<string>();
  for (
    let holder: object | null = object;
    holder !== null && holder !== Object.prototype;
    holder = Object.getPrototypeOf(holder) as object | null
  ) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(holder))) {
      if (name !== 'constructor' && typeof value === 'function') methods.add(name);
    }
  }
  return [...methods];
}

function concurrentCallsOf(object: object): number {
  const { concurrentCalls } = object.constructor as { readonly concurrentCalls?: unknown };
  if (concurrentCalls === undefined) return 1;
  const isCount = concurrentCalls === Infinity || Number.isInteger(concurrentCalls);
  if (isCount && (concurrentCalls as number) >= 1) return concurrentCalls as number;
  throw new YardmasterError(
    'ERR_TASK',
    `${typeName(object)}.concurrentCalls must be a whole number, at least 1, or Infinity`,
  );
}
