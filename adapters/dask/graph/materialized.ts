/**
 * Graphs of clients before 2023.4 (`update-graph-hlg`): layers in topological order, of which those
 * that list their tasks are read here, without Python.
 */
import type { GraphTask } from '../../../core/api/index.ts';
import { type KeyNames, namesOfWireKey } from './key-names.ts';
import { readAnnotations } from './annotations.ts';
import {
  durationMs,
  entriesOf,
  isRecord,
  itemsOf,
  numberOf,
  type GraphContext,
  type UnpackedGraph,
} from './unpacked.ts';

/** Layers whose state lists tasks and dependencies. A layer without a module is of the same form. */
const LISTING_LAYERS = new Set(['MaterializedLayer', 'BasicLayer']);

/** An `update-graph-hlg`, or what a helper made of one, as far as the listing of tasks goes. */
export type GraphMessage = Readonly<Record<string, unknown>>;

/** Whether all layers of a message list their tasks, so that no Python is needed. */
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

/** What a message says about the submission as a whole. */
export function submissionOf(
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
export function actorsOf(
  actors: unknown,
  keys: readonly string[],
  context: GraphContext,
): ReadonlySet<string> | undefined {
  if (actors === true) return new Set(keys);
  if (actors === false || actors === null || actors === undefined) return undefined;
  return new Set(itemsOf(actors).map((key) => context.keyOf(key)));
}

/** The static order, when the client has given one. */
export function ranksOf(
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
  const annotations = new AnnotationTable();
  for (const layer of layers) {
    if (!isRecord(layer) || !isRecord(layer['state'])) continue;
    const { dsk, dependencies: links } = layer['state'];
    const ofLayer = isRecord(layer['annotations']) ? layer['annotations'] : undefined;
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
      else for (const input of added) if (!known.includes(input)) known.push(input);
    }
    if (keys !== undefined && ofLayer !== undefined) annotations.add(ofLayer, keys, context);
  }
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
  const isExpanded = isRecord(value)
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
  return isRecord(hlg) && Array.isArray(hlg['layers']) ? (hlg['layers'] as unknown[]) : undefined;
}

function isListing(layer: unknown): boolean {
  if (!isRecord(layer) || !isRecord(layer['state'])) return false;
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
