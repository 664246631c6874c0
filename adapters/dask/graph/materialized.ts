import {
  type GraphTask,
  groupOfKey,
  prefixOfKey,
  YardmasterError,
} from '../../../core/api/index.ts';
import { show } from '../../../core/shared/words.ts';
import { reprOf } from '../wire/key-table.ts';
import { isFields, Opaque } from '../wire/codec.ts';
import type { HelperAnswer } from './python-helper.ts';

// Graphs of clients before 2023.4 (`update-graph-hlg`): layers in topological order, of which those
// that list their tasks are read here, without Python.

/** Layers whose state lists tasks and dependencies. A layer without a module is of the same form. */
const LISTING_LAYERS = new Set(['MaterializedLayer', 'BasicLayer']);

/** An `update-graph-hlg`, or what a helper made of one, as far as the listing of tasks goes. */
export type GraphMessage = Readonly<Record<string, unknown>>;

/** True when all layers of a message list their tasks, so that no Python is needed. */
export function isMaterialized(message: GraphMessage): boolean {
  const layers = layersOf(message);
  return layers?.every(isListing) ?? false;
}

/**
 * Reads a graph all of whose layers list their tasks. O(tasks + dependencies).
 *
 * Aliases of themselves and dependencies on themselves fall away. A dependency that is not in the graph
 * stays: the scheduler may know it.
 */
export function unpackMaterialized(message: GraphMessage, context: GraphContext): UnpackedGraph {
  const merged = mergeLayers(layersOf(message) ?? [], context);
  const keys = itemsOf(message['keys']).map((key) => context.keyOf(key));
  const actors = actorsOf(message['actors'], keys, context);
  const ranks = ranksOf(message['priority'] ?? message['internal_priority'], context);
  const tasks: GraphTask[] = [];
  for (const [key, runSpec] of merged.runSpecs) {
    if (runSpec === key) continue;
    const dependencies = merged.dependencies.get(key) ?? [];
    const task: { -readonly [Field in keyof GraphTask]: GraphTask[Field] } = {
      key,
      dependencies,
      runSpec,
      ...merged.names.get(key),
    };
    const rank = ranks?.get(key);
    if (rank !== undefined) task.rank = rank;
    if (actors?.has(key) === true) task.actor = true;
    const annotations = merged.annotations?.get(key);
    if (annotations !== undefined) Object.assign(task, readAnnotations(annotations, context));
    tasks.push(task);
  }
  return { tasks, keys, ...submissionOf(message, context) };
}

/** The part of a message that is about the submission as a whole. */
function submissionOf(
  message: GraphMessage,
  context: GraphContext,
): Pick<UnpackedGraph, 'fifoTimeoutMs' | 'submittingTask'> {
  const submittingTask = message['submitting_task'];
  return {
    fifoTimeoutMs: durationMs(message['fifo_timeout']),
    ...(submittingTask === null || submittingTask === undefined
      ? {}
      : { submittingTask: context.keyOf(submittingTask) }),
  };
}

/** `actors=True` means all wanted keys. Undefined: none. */
function actorsOf(
  actors: unknown,
  keys: readonly string[],
  context: GraphContext,
): ReadonlySet<string> | undefined {
  if (actors === true) return new Set(keys);
  if (actors === false || actors === null || actors === undefined) return undefined;
  return new Set(itemsOf(actors).map((key) => context.keyOf(key)));
}

/** The static order, when the client has given one. */
function ranksOf(
  priority: unknown,
  context: GraphContext,
): ReadonlyMap<string, number> | undefined {
  const ranks = new Map<string, number>();
  for (const [key, rank] of entriesOf(priority)) {
    const value = numberOf(rank);
    if (value !== undefined) ranks.set(context.keyOf(key), value);
  }
  return ranks.size === 0 ? undefined : ranks;
}

interface MergedLayers {
  readonly runSpecs: ReadonlyMap<string, unknown>;
  /** Of keys that are no texts. */
  readonly names: ReadonlyMap<string, KeyNames>;
  readonly dependencies: ReadonlyMap<string, string[]>;
  readonly annotations: ReadonlyMap<string, Readonly<Record<string, unknown>>> | undefined;
}

/** A task that a later layer lists again replaces the earlier one; dependencies add up. */
function mergeLayers(layers: readonly unknown[], context: GraphContext): MergedLayers {
  const runSpecs = new Map<string, unknown>();
  const names = new Map<string, KeyNames>();
  const dependencies = new Map<string, string[]>();
  const repeated = new Set<string>();
  const annotations = new AnnotationTable();
  for (const layer of layers) {
    if (!isFields(layer) || !isFields(layer['state'])) continue;
    const { dsk, dependencies: links } = layer['state'];
    const ofLayer = isFields(layer['annotations']) ? layer['annotations'] : undefined;
    const keys: string[] | undefined = hasEntries(ofLayer) ? [] : undefined;
    for (const [wire, runSpec] of entriesOf(dsk)) {
      const key = context.keyOf(wire);
      runSpecs.set(key, runSpec === wire ? key : runSpec);
      const named = namesOfWireKey(wire);
      if (named !== undefined) names.set(key, named);
      keys?.push(key);
    }
    for (const [wire, inputs] of entriesOf(links)) {
      const key = context.keyOf(wire);
      const known = dependencies.get(key);
      const added = inputsOf(inputs, key, context);
      if (known === undefined) dependencies.set(key, added);
      else {
        for (const input of added) known.push(input);
        repeated.add(key);
      }
    }
    if (keys !== undefined && ofLayer !== undefined) annotations.add(ofLayer, keys, context);
  }
  for (const key of repeated) dependencies.set(key, [...new Set(dependencies.get(key))]);
  return { runSpecs, names, dependencies, annotations: annotations.byKey };
}

function inputsOf(inputs: unknown, key: string, context: GraphContext): string[] {
  const found: string[] = [];
  for (const wire of itemsOf(inputs)) {
    const input = context.keyOf(wire);
    if (input !== key) found.push(input);
  }
  return found;
}

/** Annotations by key. The first layer that annotates a key counts, name by name. */
class AnnotationTable {
  byKey: Map<string, Readonly<Record<string, unknown>>> | undefined;

  add(ofLayer: Readonly<Record<string, unknown>>, keys: string[], context: GraphContext): void {
    this.byKey ??= new Map();
    // Keys that have the same annotations share one object.
    const forAll: Record<string, unknown> = {};
    const perKey: [string, ReadonlyMap<string, unknown>][] = [];
    for (const [name, value] of Object.entries(ofLayer)) {
      const expanded = expandedOf(value, context);
      if (expanded === undefined) setOwn(forAll, name, value);
      else perKey.push([name, expanded]);
    }
    for (const key of keys) {
      let annotations: Record<string, unknown> = forAll;
      for (const [name, values] of perKey) {
        if (!values.has(key)) continue;
        if (annotations === forAll) annotations = { ...forAll };
        setOwn(annotations, name, values.get(key));
      }
      const earlier = this.byKey.get(key);
      if (earlier !== undefined) annotations = { ...annotations, ...earlier };
      if (hasEntries(annotations)) this.byKey.set(key, annotations);
    }
  }
}

/** A value that the client has computed for each key (an annotation that was a function). */
function expandedOf(
  value: unknown,
  context: GraphContext,
): ReadonlyMap<string, unknown> | undefined {
  const isExpanded = isFields(value)
    ? Object.hasOwn(value, EXPANDED)
    : value instanceof Map && value.has(EXPANDED);
  if (!isExpanded) return undefined;
  const values = new Map<string, unknown>();
  for (const [key, item] of entriesOf(value)) {
    if (key !== EXPANDED) values.set(context.keyOf(key), item);
  }
  return values;
}

const EXPANDED = '__expanded_annotations__';

function layersOf(message: GraphMessage): readonly unknown[] | undefined {
  const { hlg } = message;
  return isFields(hlg) && Array.isArray(hlg['layers']) ? (hlg['layers'] as unknown[]) : undefined;
}

function isListing(layer: unknown): boolean {
  if (!isFields(layer) || !isFields(layer['state'])) return false;
  if (layer['state']['dsk'] === undefined || layer['state']['dependencies'] === undefined) {
    return false;
  }
  const { __module__: module, __name__: name } = layer;
  return (
    module === null || (module === 'dask.highlevelgraph' && LISTING_LAYERS.has(name as string))
  );
}

function hasEntries(record: Readonly<Record<string, unknown>> | undefined): boolean {
  for (const _ in record) return true;
  return false;
}

/** An annotation may have any name, also that of the prototype. */
function setOwn(record: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') record[name] = value;
  else Object.defineProperty(record, name, { value, enumerable: true, configurable: true });
}

// What Dask's annotations of a task mean to the scheduler.

/** Fields of a task that come from its annotations. */
type Annotated = Pick<
  GraphTask,
  | 'userPriority'
  | 'retries'
  | 'workers'
  | 'hosts'
  | 'allowOtherWorkers'
  | 'resources'
  | 'annotations'
>;

/**
 * Reads the annotations that have a meaning to the scheduler; all of them stay with the task, because
 * workers and plugins see them. What cannot be meant (`retries="x"`) is only kept.
 *
 * @throws YardmasterError `ERR_GRAPH_INVALID` when resources are no numbers by name
 */
export function readAnnotations(
  annotations: Readonly<Record<string, unknown>>,
  context: GraphContext,
): Annotated {
  const read: { -readonly [Field in keyof Annotated]: Annotated[Field] } = { annotations };
  const priority = numberOf(annotations['priority']);
  if (priority !== undefined) read.userPriority = priority;
  const retries = numberOf(annotations['retries']);
  if (retries !== undefined) read.retries = retries;
  const places = annotations['workers'] ?? annotations['restrictions'];
  if (places !== undefined && places !== null) Object.assign(read, readPlaces(places, context));
  const isLoose = annotations['allow_other_workers'] ?? annotations['loose_restrictions'];
  if (typeof isLoose === 'boolean') read.allowOtherWorkers = isLoose;
  const amounts = annotations['resources'];
  if (amounts !== undefined && amounts !== null) read.resources = readResources(amounts);
  return read;
}

/** @throws YardmasterError `ERR_GRAPH_INVALID`: a task that ignored them would run where it must not */
function readResources(amounts: unknown): Readonly<Record<string, number>> {
  const resources: Record<string, number> = {};
  for (const [name, amount] of Object.entries(isFields(amounts) ? amounts : { '': amounts })) {
    const value = numberOf(amount);
    if (value !== undefined && name !== '') resources[name] = value;
    else {
      throw new YardmasterError(
        'ERR_GRAPH_INVALID',
        `resources of a task are numbers by name, such as {"GPU": 1}, not ${show(amounts)}`,
      );
    }
  }
  return resources;
}

/** An entry is an address, the name of a worker (also a number), or else a host. */
function readPlaces(places: unknown, context: GraphContext): Annotated {
  const workers: string[] = [];
  const hosts: string[] = [];
  for (const place of itemsOf(places)) {
    if (Array.isArray(place)) {
      workers.push(`tcp://${place.map(String).join(':')}`);
      continue;
    }
    const name = String(place);
    if (context.isWorkerName(name)) workers.push(name);
    else if (name.includes('://')) workers.push(name);
    else if (/:\d+$/.test(name)) workers.push(`tcp://${name}`);
    else hosts.push(name);
  }
  return {
    ...(workers.length > 0 ? { workers } : {}),
    ...(hosts.length > 0 ? { hosts } : {}),
  };
}

// Prefix and group of keys that are no texts, as Dask's `key_split` and `key_split_group` give them.

interface KeyNames {
  readonly prefix: string;
  readonly group: string;
}

const OTHER: KeyNames = { prefix: 'Other', group: 'Other' };
let latest: { readonly first: string; readonly names: KeyNames | undefined } | undefined;

/**
 * The names of a tuple come from its first element, not from what the tuple looks like as a text:
 * `("x-abc-de", 0)` has the prefix `x-abc-de`, and the text `('x-abc-de', 0)` has `x-abc`. Undefined where
 * the scheduler finds the same names in the text. Tuples of one collection come in a row, so the latest
 * answer is kept.
 */
export function namesOfWireKey(key: unknown): KeyNames | undefined {
  if (typeof key === 'string') return undefined;
  if (key instanceof Uint8Array) return namesOfText(Buffer.from(key).toString());
  if (!Array.isArray(key) || key.length === 0) return OTHER;
  const first = key[0] as unknown;
  if (typeof first !== 'string') {
    return { prefix: prefixOfNested(first), group: reprOf(first) };
  }
  if (latest?.first !== first) latest = { first, names: namesOfTuple(first) };
  return latest.names;
}

function namesOfTuple(first: string): KeyNames | undefined {
  const names = { prefix: prefixOfKey(first), group: first };
  const asText = namesOfText(reprOf([first, 0]));
  return names.prefix === asText.prefix && names.group === asText.group ? undefined : names;
}

function namesOfText(text: string): KeyNames {
  return { prefix: prefixOfKey(text), group: groupOfKey(text) };
}

/** Of a tuple within a tuple the first element decides, however deep it is. */
function prefixOfNested(key: unknown): string {
  if (typeof key === 'string') return prefixOfKey(key);
  if (key instanceof Uint8Array) return prefixOfKey(Buffer.from(key).toString());
  return Array.isArray(key) && key.length > 0 ? prefixOfNested(key[0]) : OTHER.prefix;
}

// What a client of Dask submits, in the words of our scheduler.

/** The context of the unpacking of a graph: the cluster and its keys. */
export interface GraphContext {
  /** The text under which the scheduler knows a key; tuples among them have one, too. */
  keyOf(wire: unknown): string;
  /** True when a worker has this name; decides whether `workers=` means a worker or a host. */
  isWorkerName(name: string): boolean;
}

/** A graph, ready for `update-graph`. */
export interface UnpackedGraph {
  /** Tasks that are needed for the keys, or all of the graph. */
  readonly tasks: GraphTask[];
  /** Wanted keys. */
  readonly keys: string[];
  /** As `UpdateGraph.fifoTimeoutMs`. */
  readonly fifoTimeoutMs: number;
  /** As `UpdateGraph.submittingTask`. */
  readonly submittingTask?: string;
}

/**
 * The call of a task, as it goes into `compute-task`: the run specification is either an
 * opaque object, or a call whose parts take three fields of the message.
 */
export interface CallSpec {
  /** Pickled function. */
  readonly function: Uint8Array;
  /** Pickled or opaque. */
  readonly args: unknown;
  readonly kwargs?: unknown;
}

/** True when a run specification is a call (`function`, `args`, `kwargs`), and not one opaque object. */
export function isCallSpec(spec: unknown): spec is CallSpec {
  return isFields(spec) && spec['function'] instanceof Uint8Array;
}

/** The entries of a map of msgpack, whatever its keys are. */
function entriesOf(map: unknown): Iterable<readonly [unknown, unknown]> {
  if (map instanceof Map) return map as ReadonlyMap<unknown, unknown>;
  return isFields(map) ? Object.entries(map) : [];
}

/** The items of a list, tuple or set of Python; a single value counts as a list of itself. */
function itemsOf(list: unknown): readonly unknown[] {
  if (Array.isArray(list)) return list as unknown[];
  if (list instanceof Set) return [...(list as ReadonlySet<unknown>)];
  return list === null || list === undefined ? [] : [list];
}

/** A number of the wire, also when it is an integral float; undefined for anything else. */
function numberOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  if (typeof value === 'bigint' || value instanceof Number) return Number(value);
  return undefined;
}

/** Of a text without blanks around it: a search in them takes time with the cube of their number. */
const DURATION = /^(-?[\d.]*(?:e[-+]?\d+)?)\s*([a-zµ]*)$/i;
const UNITS_MS = new Map<string, number>(
  Object.entries({
    '': 1000,
    s: 1000,
    sec: 1000,
    second: 1000,
    ms: 1,
    millisecond: 1,
    us: 1e-3,
    µs: 1e-3,
    microsecond: 1e-3,
    ns: 1e-6,
    nanosecond: 1e-6,
    m: 60e3,
    min: 60e3,
    minute: 60e3,
    h: 3600e3,
    hr: 3600e3,
    hour: 3600e3,
    d: 86_400e3,
    day: 86_400e3,
    w: 7 * 86_400e3,
    week: 7 * 86_400e3,
  }),
);

/** A duration of Dask (`"100 ms"`, `"60s"`, seconds) in milliseconds; 0 when it is none. */
export function durationMs(duration: unknown): number {
  const seconds = numberOf(duration);
  if (seconds !== undefined) return seconds * 1000;
  if (typeof duration !== 'string') return 0;
  const [, digits = '', unit = '?'] = DURATION.exec(duration.trim()) ?? [];
  const scale = UNITS_MS.get(unit) ?? UNITS_MS.get(unit.toLowerCase().replace(/(?<=..)s$/, ''));
  const count = digits === '' ? 1 : Number(digits);
  return scale === undefined || !Number.isFinite(count) ? 0 : count * scale;
}

// Puts the parts of a graph together that a helper has read.

/** As in helper.py. */
const KINDS = ['pickled', 'serialized'] as const;
const CALL = 2;

/**
 * O(tasks + dependencies).
 * @param message - of the client
 * @throws YardmasterError `ERR_PROTOCOL` when the answers do not fit together
 */
export function assembleGraph(
  message: GraphMessage,
  answers: readonly HelperAnswer[],
  context: GraphContext,
): UnpackedGraph {
  const names = namesOf(answers, context);
  const keys = itemsOf(message['keys']).map((key) => context.keyOf(key));
  const actors = actorsOf(message['actors'], keys, context);
  const ranks = ranksOf(message['priority'] ?? message['internal_priority'], context);
  const annotations: Annotated[] = [];
  const blobs: Uint8Array[] = [];
  const tasks: GraphTask[] = [];
  for (const answer of answers) {
    for (const blob of answer.blobs) blobs.push(blob);
    for (const fresh of listOf(answer, 'annotations', false)) {
      annotations.push(readAnnotations(isFields(fresh) ? fresh : {}, context));
    }
    const wireKeys = listOf(answer, 'keys');
    const links = listOf(answer, 'links');
    const specs = listOf(answer, 'specs');
    const annotated = listOf(answer, 'annotated', false);
    const producers = new Set(listOf(answer, 'producers', false));
    for (let index = 0; index < links.length; index++) {
      const key = names[tasks.length] as string;
      const task: { -readonly [Field in keyof GraphTask]: GraphTask[Field] } = {
        key,
        dependencies: inputsOfAnswer(links[index], names),
        runSpec: specOf(specs[index], blobs),
        ...namesOfWireKey(wireKeys[index]),
      };
      const rank = ranks?.get(key);
      if (rank !== undefined) task.rank = rank;
      if (actors?.has(key) === true) task.actor = true;
      if (producers.has(index)) task.dataProducer = true;
      const position = annotated[index];
      if (typeof position === 'number' && position >= 0) {
        Object.assign(task, annotations[position]);
      }
      tasks.push(task);
    }
  }
  return { tasks, keys, ...submissionOf(message, context) };
}

/** Keys of the tasks, then of their inputs from outside. */
function namesOf(answers: readonly HelperAnswer[], context: GraphContext): string[] {
  const names: string[] = [];
  for (const answer of answers) {
    for (const key of listOf(answer, 'keys')) names.push(context.keyOf(key));
  }
  for (const answer of answers) {
    for (const key of listOf(answer, 'outside', false)) names.push(context.keyOf(key));
  }
  return names;
}

function inputsOfAnswer(links: unknown, names: readonly string[]): string[] {
  const inputs: string[] = [];
  for (const position of links as readonly number[]) {
    const name = names[position];
    if (name === undefined) throw doesNotFit(`there is no task ${position}`);
    inputs.push(name);
  }
  return inputs;
}

function specOf(spec: unknown, blobs: readonly Uint8Array[]): unknown {
  if (spec instanceof Uint8Array) return new Opaque('pickled', spec, NO_FRAMES);
  if (!Array.isArray(spec)) throw doesNotFit('a run specification has no known form');
  const [kind, first, second, third] = spec as unknown[];
  if (kind === CALL) {
    const call = { function: blobAt(first, blobs), args: partOf(second, blobs) };
    return third === null || third === undefined ? call : { ...call, kwargs: partOf(third, blobs) };
  }
  const name = KINDS[kind as number];
  if (name === undefined || !(first instanceof Uint8Array) || !Array.isArray(second)) {
    throw doesNotFit(`a run specification has the form ${String(kind)}`);
  }
  return new Opaque(
    name,
    first,
    (second as unknown[]).map((position) => blobAt(position, blobs)),
  );
}

/** Arguments are pickled or opaque. */
function partOf(part: unknown, blobs: readonly Uint8Array[]): unknown {
  return Array.isArray(part) ? specOf(part, blobs) : part;
}

function blobAt(position: unknown, blobs: readonly Uint8Array[]): Uint8Array {
  const blob = blobs[position as number];
  if (blob === undefined) throw doesNotFit(`there is no blob ${String(position)}`);
  return blob;
}

function listOf({ message }: HelperAnswer, name: string, isNeeded = true): readonly unknown[] {
  const list = message[name];
  if (Array.isArray(list)) return list as unknown[];
  if (!isNeeded) return [];
  throw doesNotFit(`"${name}" is missing`);
}

function doesNotFit(what: string): YardmasterError {
  return new YardmasterError(
    'ERR_PROTOCOL',
    `the Python helper answered with a graph that does not fit together: ${what}. Is helper.py of another version?`,
  );
}

const NO_FRAMES: readonly Uint8Array[] = [];
