/**
 * Views of the scheduler's state that cannot change it. Policies, hooks and listeners that are not part of this
 * package get them in the place of the state itself, so that a mistake there is an error with a name, and not a
 * wrong result of another task.
 *
 * A view reads through: it is always as new as what it shows, and what is read from it is a view again. Each task,
 * worker and client has one view, so views can be compared and be keys of a map. What policies read for each task or
 * worker is shown by plain objects with getters, which cost next to nothing; lists and data of which nothing is known
 * but that they must not change are shown by proxies, where a property costs some fifty nanoseconds. Extensions of
 * this package are trusted with the state itself.
 */
import { YardmasterError } from '../api/errors.ts';
import type { AmmView } from '../api/amm.ts';
import type { Theft, WorkerLoad } from '../api/policies.ts';
import type {
  ClientView,
  ClusterView,
  FewMembers,
  GroupView,
  Members,
  PrefixView,
  TaskView,
  WorkerView,
} from '../api/views.ts';
import { isReference, SHOWN, type ShownKind } from '../util/values.ts';

/** Proxies by what they show, and the reverse. */
const proxies = new WeakMap<object, object>();
const originals = new WeakMap<object, object>();
/** Extensions that see the state itself. */
const trusted = new WeakSet<object>();

/** Lets an extension of this package, a definition, a class or an instance, see the state itself. */
export function trust<T extends object>(extension: T): T {
  trusted.add(extension);
  return extension;
}

/** True for an extension that sees the state itself. */
export function isTrusted(extension: unknown): boolean {
  return isReference(extension) && trusted.has(extension);
}

/**
 * A view of a value; values that cannot be changed are returned as they are. Bytes are copied.
 * O(1) but for bytes.
 */
export function readOnly<T>(value: T): T {
  return isReference(value) ? (viewOf(value, undefined, '') as T) : value;
}

/** The object behind a view; anything else as it is. */
export function original<T>(value: T): T {
  return isReference(value) ? (View.original(value) as T) : value;
}

/** Module-private: how a message calls what is shown. */
const NAME = Symbol('name');

/** A view, which can be named in a message. */
interface Showing {
  [NAME](): string;
}

/** @param property - of the owner, by which the value was reached */
function viewOf(value: object, owner: Showing | undefined, property: PropertyKey): unknown {
  const known = (value as { readonly [SHOWN]?: ShownKind | object })[SHOWN];
  if (typeof known === 'object') return known;
  if (known !== undefined) return View.of(value, KINDS[known]);
  const { size, get, [Symbol.iterator]: each } = value as Readonly<Record<PropertyKey, unknown>>;
  if (typeof size === 'number' && typeof each === 'function') {
    if (typeof get === 'function') return new ShownMap(value as AnyMap, owner, property);
    return value instanceof Set
      ? new ShownSet(value, owner, property)
      : new ShownMembers(value as AnyMembers, owner, property);
  }
  const proxy = proxies.get(value);
  if (proxy !== undefined) return proxy;
  if (originals.has(value) || isSafe(value)) return value;
  if (typeof value === 'function') return callOf(value as Method, undefined);
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return structuredClone(value);
  // A proxy must say of a frozen object what that says itself, so a frozen one is read from a copy.
  const target = Object.isExtensible(value) ? value : shallowCopy(value);
  const view = new Proxy(target, new Reader(value, owner, property));
  proxies.set(value, view);
  originals.set(view, value);
  return view;
}

/** A view of what a property of a view shows. */
function part<T>(value: T, owner: Showing, property: PropertyKey): T {
  return isReference(value) ? (viewOf(value, owner, property) as T) : value;
}

/** A method or function of the state. */
type Method = (...args: unknown[]) => unknown;

/** A function that takes views and gives one. */
function callOf(method: Method, self: unknown): Method {
  return (a, b, c) => {
    const result = method.call(self, original(a), original(b), original(c));
    const isIterator =
      typeof (result as Partial<Iterator<unknown>> | undefined)?.next === 'function';
    return isIterator ? viewsIn(result as Iterator<unknown>) : readOnly(result);
  };
}

/** True for what has no state of the scheduler in it. */
function isSafe(value: object): boolean {
  return (
    value instanceof Error ||
    value instanceof Promise ||
    value instanceof Date ||
    value instanceof AbortSignal
  );
}

function shallowCopy(value: object): object {
  if (Array.isArray(value)) return [...(value as readonly unknown[])];
  const copy = Object.create(Object.getPrototypeOf(value) as object | null) as object;
  return Object.assign(copy, value);
}

/** The items of an iterator, as views. An entry of a map is a list of its own. */
function* viewsIn(items: Iterator<unknown>): Generator {
  for (let step = items.next(); step.done !== true; step = items.next()) {
    const item = step.value;
    const isPair = Array.isArray(item) && item.length === 2 && Object.isExtensible(item);
    yield isPair ? item.map((one: unknown) => readOnly(one)) : readOnly(item);
  }
}

function refusal(what: string, of: Showing, advice = 'copy what is to be changed') {
  return new YardmasterError(
    'ERR_READ_ONLY',
    `it tried to ${what} ${of[NAME]()}, which is the scheduler's own: ${advice}`,
    { what: `${what} ${of[NAME]()}` },
  );
}

/** By which Node's `console.log` asks an object what to show. */
const INSPECT: unique symbol = Symbol.for('nodejs.util.inspect.custom') as never;

/** The object behind a view. Nothing outside of this file can ask for it. */
let shownBy: <Original extends object>(view: object) => Original;

/** A view shows an object by getters. Every class below is the whole of what extensions see of its kind. */
abstract class View<Original extends object = object> implements Showing {
  readonly #original: Original;

  constructor(shown: Original) {
    this.#original = shown;
  }

  /** The view of an object that keeps its view, made when it is first asked for. Nothing can be added to it. */
  static of<Original extends object>(
    value: Original,
    Kind: new (value: never) => View<Original>,
  ): View<Original> {
    const view = Object.preventExtensions(new Kind(value as never));
    (value as { [SHOWN]?: object })[SHOWN] = view;
    return view;
  }

  static original(value: object): object {
    return #original in value ? value.#original : (originals.get(value) ?? value);
  }

  static {
    // Asked for what no view has. A property that is defined, and not set, is refused by the engine.
    const set = (_: object, name: PropertyKey, _value: unknown, view: Showing): never => {
      throw refusal(`add "${String(name)}" to`, view, 'keep it in a Map by what it is about');
    };
    Object.setPrototypeOf(View.prototype, new Proxy({}, { set }));
    shownBy = (view) => (view as View).#original as never;
  }

  abstract [NAME](): string;

  /** A view is its own. */
  get [SHOWN](): this {
    return this;
  }

  /** The properties of the object, with other objects by their names. */
  toJSON(): unknown {
    const fields = this as unknown as Readonly<Record<string, unknown>>;
    const shown: Record<string, unknown> = {};
    for (const name in this) shown[name] = plain(fields[name]);
    return shown;
  }

  [INSPECT](): unknown {
    return this.toJSON();
  }

  toString(): string {
    return (this.#original as { toString(): string }).toString();
  }
}

/** Names in the place of tasks, workers and the like. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (!(value instanceof View)) return value;
  const { key, address, name } = value as { key?: unknown; address?: unknown; name?: unknown };
  return key ?? address ?? name ?? value.toJSON();
}

/** A collection, whatever holds its members. */
type AnyMembers = Iterable<unknown> & {
  readonly size: number;
  readonly items?: readonly unknown[];
  has?(item: never): boolean;
  at?(place: number): unknown;
  peek?(): unknown;
};
type AnyMap = ReadonlyMap<unknown, unknown>;

/** A collection of the state. It is made when it is read, and shows what there is then and later. */
abstract class ShownCollection<Original extends AnyMembers | AnyMap> extends View<Original> {
  readonly #owner: Showing | undefined;
  readonly #property: PropertyKey;

  constructor(shown: Original, owner: Showing | undefined, property: PropertyKey) {
    super(shown);
    this.#owner = owner;
    this.#property = property;
  }

  [NAME](): string {
    if (this.#owner === undefined) return 'the collection that it was given';
    return `${String(this.#property)} of ${this.#owner[NAME]()}`;
  }

  abstract [Symbol.iterator](): Iterator<unknown>;

  override toJSON(): unknown {
    return Array.from(this as unknown as Iterable<unknown>, plain);
  }

  override toString(): string {
    return String(this.toJSON());
  }
}

class ShownMembers<T> extends ShownCollection<AnyMembers> implements FewMembers<T> {
  get size(): number {
    return shownBy<AnyMembers>(this).size;
  }

  get items(): readonly T[] {
    return part(shownBy<AnyMembers>(this).items as readonly T[], this, 'items');
  }

  has(item: T): boolean {
    return shownBy<AnyMembers>(this).has!(original(item) as never);
  }

  at(place: number): T | undefined {
    return readOnly(shownBy<AnyMembers>(this).at!(place)) as T | undefined;
  }

  peek(): T | undefined {
    return readOnly(shownBy<AnyMembers>(this).peek!()) as T | undefined;
  }

  *[Symbol.iterator](): IterableIterator<T> {
    for (const item of shownBy<AnyMembers>(this)) yield readOnly(item) as T;
  }
}

class ShownSet<T> extends ShownCollection<ReadonlySet<T>> implements ReadonlySet<T> {
  get size(): number {
    return shownBy<ReadonlySet<T>>(this).size;
  }

  has(item: T): boolean {
    return shownBy<ReadonlySet<T>>(this).has(original(item));
  }

  forEach(visit: (item: T, same: T, set: ReadonlySet<T>) => void, self?: unknown): void {
    for (const item of this) visit.call(self, item, item, this);
  }

  *entries(): SetIterator<[T, T]> {
    for (const item of this) yield [item, item];
  }

  keys(): SetIterator<T> {
    return this[Symbol.iterator]();
  }

  values(): SetIterator<T> {
    return this[Symbol.iterator]();
  }

  *[Symbol.iterator](): SetIterator<T> {
    for (const item of shownBy<ReadonlySet<T>>(this)) yield readOnly(item);
  }
}

class ShownMap<K, V> extends ShownCollection<ReadonlyMap<K, V>> implements ReadonlyMap<K, V> {
  get size(): number {
    return shownBy<ReadonlyMap<K, V>>(this).size;
  }

  has(key: K): boolean {
    return shownBy<ReadonlyMap<K, V>>(this).has(original(key));
  }

  get(key: K): V | undefined {
    return readOnly(shownBy<ReadonlyMap<K, V>>(this).get(original(key)));
  }

  forEach(visit: (value: V, key: K, map: ReadonlyMap<K, V>) => void, self?: unknown): void {
    for (const [key, value] of this) visit.call(self, value, key, this);
  }

  *entries(): MapIterator<[K, V]> {
    for (const [key, value] of shownBy<ReadonlyMap<K, V>>(this))
      yield [readOnly(key), readOnly(value)];
  }

  *keys(): MapIterator<K> {
    for (const key of shownBy<ReadonlyMap<K, V>>(this).keys()) yield readOnly(key);
  }

  *values(): MapIterator<V> {
    for (const value of shownBy<ReadonlyMap<K, V>>(this).values()) yield readOnly(value);
  }

  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.entries();
  }

  override toJSON(): unknown {
    return Object.fromEntries(Array.from(this, ([key, value]) => [plain(key), plain(value)]));
  }

  override toString(): string {
    return JSON.stringify(this);
  }
}

/**
 * A view passes on views of the objects that its properties hold, and values that cannot be changed as they are.
 * The class says with `implements` what extensions are promised, so the compiler names a property that is left out.
 */
function showing<Original extends object>() {
  return <Name extends string & keyof Original>(...names: readonly Name[]) => {
    abstract class Passing extends View<Original> {}
    for (const name of names) {
      const get = function (this: View<Original>): unknown {
        return part(shownBy<Original>(this)[name], this, name);
      };
      Object.defineProperty(Passing.prototype, name, { get, configurable: true });
    }
    return Passing as unknown as abstract new (
      shown: Original,
    ) => View<Original> & Pick<Original, Name>;
  };
}

class ShownTask
  extends showing<TaskView>()(
    ...(['id', 'group', 'negatedUserPriority', 'arrival'] as const),
    ...(['generation', 'rank', 'dependencies', 'dependentCount'] as const),
    ...(['whoWants', 'processingOn', 'steal', 'type', 'retries'] as const),
    ...(['suspicious', 'isActor', 'isDataProducer', 'isQueueable'] as const),
    ...(['restrictions', 'limit', 'runId', 'hasLostDependencies', 'exceptionBlame'] as const),
    ...(['erredOn', 'failure', 'runSpec', 'annotations', 'metadata'] as const),
  )
  implements TaskView
{
  // What policies read most, written out: that halves what it costs.
  get key(): string {
    return shownBy<TaskView>(this).key;
  }
  get prefix(): PrefixView {
    return readOnly(shownBy<TaskView>(this).prefix);
  }
  get state(): TaskView['state'] {
    return shownBy<TaskView>(this).state;
  }
  get nbytes(): number {
    return shownBy<TaskView>(this).nbytes;
  }
  get replicas(): number {
    return shownBy<TaskView>(this).replicas;
  }
  get waiterCount(): number {
    return shownBy<TaskView>(this).waiterCount;
  }
  get whoHas(): FewMembers<WorkerView> {
    return new ShownMembers(shownBy<TaskView>(this).whoHas, this, 'whoHas');
  }

  // These are built anew whenever they are read.
  get priority(): TaskView['priority'] {
    return shownBy<TaskView>(this).priority;
  }
  get dependents(): readonly TaskView[] {
    return shownBy<TaskView>(this).dependents.map(readOnly);
  }
  get waitingOn(): readonly TaskView[] {
    return shownBy<TaskView>(this).waitingOn.map(readOnly);
  }
  get waiters(): readonly TaskView[] {
    return shownBy<TaskView>(this).waiters.map(readOnly);
  }

  [NAME](): string {
    return `the task "${this.key}"`;
  }
}

class ShownWorker
  extends showing<WorkerView>()(
    ...(['identity', 'address', 'name', 'host', 'memoryLimitBytes'] as const),
    ...(['language', 'status', 'rank', 'inFlightS', 'inFlightTasks'] as const),
    ...(['openSlots', 'processing', 'longRunning', 'executing', 'endingRuns'] as const),
    ...([
      'networkBytes',
      'requestedBytes',
      'actors',
      'resources',
      'usedResources',
      'metrics',
    ] as const),
    ...(['lastSeenMs'] as const),
  )
  implements WorkerView
{
  get occupancyS(): number {
    return shownBy<WorkerView>(this).occupancyS;
  }
  get threadCount(): number {
    return shownBy<WorkerView>(this).threadCount;
  }
  get pace(): number {
    return shownBy<WorkerView>(this).pace;
  }
  get nbytes(): number {
    return shownBy<WorkerView>(this).nbytes;
  }
  get hasWhat(): Members<TaskView> {
    return new ShownMembers(shownBy<WorkerView>(this).hasWhat, this, 'hasWhat');
  }
  get needsWhat(): WorkerView['needsWhat'] {
    const { needsWhat } = shownBy<WorkerView>(this);
    return new ShownMembers(needsWhat as AnyMembers, this, 'needsWhat');
  }
  /** Built anew whenever it is read. */
  get memory(): WorkerView['memory'] {
    return shownBy<WorkerView>(this).memory;
  }

  [NAME](): string {
    return `the worker "${this.address}"`;
  }
}

class ShownClient
  extends showing<ClientView>()('key', 'wantsWhat', 'lastSeenMs')
  implements ClientView
{
  [NAME](): string {
    return `the client "${this.key}"`;
  }
}

class ShownGroup
  extends showing<GroupView>()(
    ...(['name', 'prefix', 'size', 'states', 'dependencies', 'nbytesTotal', 'types'] as const),
    ...(['durationS', 'otherDurationsS'] as const),
  )
  implements GroupView
{
  [NAME](): string {
    return `the group "${this.name}"`;
  }
}

class ShownPrefix
  extends showing<PrefixView>()(
    ...(['name', 'durationAverageS', 'durationEstimateS', 'suspicious', 'states'] as const),
    ...(['known', 'nbytesAverage', 'stateCounts', 'nbytesTotal', 'nbytesProduced'] as const),
    ...(['computedS', 'transferredS'] as const),
  )
  implements PrefixView
{
  [NAME](): string {
    return `the prefix "${this.name}"`;
  }
}

class ShownCluster
  extends showing<ClusterView>()(
    ...(['tasks', 'groups', 'prefixes', 'workers', 'clients', 'running', 'idle'] as const),
    ...(['saturated', 'openSlots', 'limits', 'queued', 'unrunnable', 'replicated'] as const),
    ...(['replicasWanted', 'stealsInFlight', 'totalThreads', 'totalOccupancyS'] as const),
    ...(['generation', 'assignedCount', 'nowMs', 'lost'] as const),
  )
  implements ClusterView
{
  readonly #costs = new ShownCosts(shownBy<ClusterView>(this).costs);

  get costs(): ClusterView['costs'] {
    return this.#costs;
  }

  /** Built anew whenever it is read. */
  get memory(): ClusterView['memory'] {
    return shownBy<ClusterView>(this).memory;
  }

  suits(task: TaskView, worker: WorkerView, victim?: WorkerView): 'no' | 'tolerably' | 'well' {
    return shownBy<ClusterView>(this).suits(original(task), original(worker), original(victim));
  }

  suitsAnywhere(task: TaskView): boolean {
    return shownBy<ClusterView>(this).suitsAnywhere(original(task));
  }

  whyWaits(task: TaskView): string | undefined {
    return shownBy<ClusterView>(this).whyWaits(original(task));
  }

  [NAME](): string {
    return 'the cluster';
  }
}

type Costs = ClusterView['costs'];

class ShownCosts
  extends showing<ClusterView['costs']>()('bandwidth', 'defaultDataSize', 'defaultTaskDurationsS')
  implements Costs
{
  [NAME](): string {
    return 'costs of the cluster';
  }
}

class ShownLoad
  extends showing<WorkerLoad>()(
    ...(['worker', 'workS', 'perThreadS', 'taskCount', 'threadCount', 'isThief'] as const),
    ...(['takenCount'] as const),
  )
  implements WorkerLoad
{
  [NAME](): string {
    return `the load of the worker "${this.worker.address}"`;
  }
}

class ShownTheft
  extends showing<Theft>()(
    ...(['task', 'victim', 'thief', 'computeS', 'thiefTransferS', 'victimTransferS'] as const),
  )
  implements Theft
{
  [NAME](): string {
    return 'the theft';
  }
}

/** A manager as a round of it is seen. */
class ShownManager extends showing<AmmView>()(
  ...(['cluster', 'scheduler', 'workersMemory', 'pending', 'policies', 'intervalMs'] as const),
  ...(['measure'] as const),
) {
  copies(task: TaskView): number {
    return shownBy<AmmView>(this).copies(original(task));
  }

  [NAME](): string {
    return 'the Active Memory Manager';
  }
}

/** The view of each kind of object that keeps its view. */
const KINDS: Readonly<Record<ShownKind, new (value: never) => View>> = {
  task: ShownTask,
  worker: ShownWorker,
  client: ShownClient,
  group: ShownGroup,
  prefix: ShownPrefix,
  cluster: ShownCluster,
  load: ShownLoad,
  theft: ShownTheft,
  manager: ShownManager,
};

/** The methods that change collections: a view has an error in their place that says so. */
const CHANGES = ['add', 'clear', 'delete', 'pop', 'put', 'set'];

/** From now on nothing that is read can be set, and nobody can add to what all views of a kind share. */
function seal(prototype: object): void {
  if (Object.isFrozen(prototype)) return;
  for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
    if (!('get' in property)) continue;
    const set = function (this: View): never {
      throw refusal(`set "${name}" of`, this);
    };
    Object.defineProperty(prototype, name, { ...property, set, enumerable: true });
  }
  Object.freeze(prototype);
  if (prototype !== View.prototype) seal(Object.getPrototypeOf(prototype) as object);
}

for (const name of CHANGES) {
  const value = function (this: View): never {
    throw refusal(`${name}() on`, this);
  };
  Object.defineProperty(ShownCollection.prototype, name, { value });
}
for (const { prototype } of [ShownMembers, ShownSet, ShownMap, ShownCosts]) seal(prototype);
for (const { prototype } of Object.values(KINDS)) seal(prototype as object);

/** Methods of a list that change it: they work on the view, which refuses. The others read a copy with views. */
const LIST_CHANGES = new Set<PropertyKey>([
  ...['copyWithin', 'fill', 'pop', 'push', 'reverse', 'shift', 'sort', 'splice', 'unshift'],
]);

/** The proxy of one list or object of data: reads are passed on, and writes are refused. */
class Reader implements ProxyHandler<object>, Showing {
  constructor(
    private readonly value: object,
    private readonly owner: Showing | undefined,
    private readonly property: PropertyKey,
  ) {}

  get(_target: object, name: PropertyKey): unknown {
    const { value } = this;
    // Getters run on the object itself: they may remember what they have computed.
    const found: unknown = (value as Readonly<Record<PropertyKey, unknown>>)[name];
    if (typeof found !== 'function') return part(found, this, name);
    if (Array.isArray(value)) {
      if (name === 'constructor' || LIST_CHANGES.has(name)) return found;
      const shown = value.map((item: unknown, index) => part(item, this, String(index)));
      return (found as Method).bind(shown);
    }
    return Object.hasOwn(value, name) ? callOf(found as Method, value) : found;
  }

  set(_target: object, name: PropertyKey): never {
    throw refusal(`set "${String(name)}" of`, this);
  }

  defineProperty(_target: object, name: PropertyKey): never {
    throw refusal(`set "${String(name)}" of`, this);
  }

  deleteProperty(_target: object, name: PropertyKey): never {
    throw refusal(`delete "${String(name)}" of`, this);
  }

  setPrototypeOf(): never {
    throw refusal('change the prototype of', this);
  }

  preventExtensions(): never {
    throw refusal('freeze', this);
  }

  getOwnPropertyDescriptor(target: object, name: PropertyKey): PropertyDescriptor | undefined {
    const descriptor = Reflect.getOwnPropertyDescriptor(target, name);
    if (descriptor === undefined || !('value' in descriptor)) return descriptor;
    return { ...descriptor, value: part<unknown>(descriptor.value, this, name) };
  }

  /** For messages: `items of whoHas of the task "x"`. */
  [NAME](): string {
    const { key, name } = this.value as Readonly<Record<string, unknown>>;
    if (typeof key === 'string') return `the entry "${key}"`;
    if (this.owner !== undefined) return `${String(this.property)} of ${this.owner[NAME]()}`;
    const kind = Array.isArray(this.value) ? 'list' : 'object';
    return typeof name === 'string' ? `"${name}"` : `the ${kind} that it was given`;
  }
}
