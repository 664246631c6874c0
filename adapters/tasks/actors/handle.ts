import { inspect } from 'node:util';
import { YardmasterError } from '../../../core/api/index.ts';
import { packArguments } from '../arguments.ts';
import { ScatteredValue } from '../scattered-value.ts';
import { deserialise } from '../serialise.ts';
import { type ActorDescription, readActor } from './description.ts';

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

/** How a handle reaches its actor. */
export interface ActorCaller {
  /**
   * The serialised answer. Requests arrive in the order in which they are made.
   * @throws RemoteError what the method threw
   * @throws YardmasterError `ERR_ACTOR_LOST`, `ERR_CLOSED`
   */
  send(actor: ActorDescription, request: ActorRequest): Promise<Uint8Array>;
  /** Whether shared memory in arguments stays shared on the way to every actor. Default false: it is copied. */
  readonly sharesMemory?: boolean;
  /** The caller of handles that are made for what an actor answers or is given. */
  release?(): void;
}

/** What is behind a handle. */
interface ActorLink {
  readonly description: ActorDescription;
  readonly caller: ActorCaller;
}

const LINK = Symbol.for('yardmaster.actor');

/** What is behind a value, if it is the handle of an actor, also of another copy of this package. */
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

/** The handle of an actor. */
export function makeHandle(link: ActorLink): ActorHandle<object> {
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
