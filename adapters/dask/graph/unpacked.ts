/** What a client of Dask submits, in the words of our scheduler. */
import type { GraphTask } from '../../../core/api/index.ts';

/** What the unpacking of a graph must know about the cluster and its keys. */
export interface GraphContext {
  /** The text under which the scheduler knows a key; tuples among them have one, too. */
  keyOf(wire: unknown): string;
  /** Whether a worker has this name; decides whether `workers=` means a worker or a host. */
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
 * How a worker computes a task, as it goes into `compute-task`: the run specification is either an
 * opaque object, or a call whose parts take three fields of the message.
 */
export interface CallSpec {
  /** Pickled function. */
  readonly function: Uint8Array;
  /** Pickled or opaque. */
  readonly args: unknown;
  readonly kwargs?: unknown;
}

/** Whether a run specification is a call (`function`, `args`, `kwargs`), and not one opaque object. */
export function isCallSpec(spec: unknown): spec is CallSpec {
  return isRecord(spec) && spec['function'] instanceof Uint8Array;
}

/** Whether it is an object with named fields, as a map of msgpack with only string keys is. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** The entries of a map of msgpack, whatever its keys are. */
export function entriesOf(map: unknown): Iterable<readonly [unknown, unknown]> {
  if (map instanceof Map) return map as ReadonlyMap<unknown, unknown>;
  return isRecord(map) ? Object.entries(map) : [];
}

/** The items of a list, tuple or set of Python; a single value counts as a list of itself. */
export function itemsOf(list: unknown): readonly unknown[] {
  if (Array.isArray(list)) return list as unknown[];
  if (list instanceof Set) return [...(list as ReadonlySet<unknown>)];
  return list === null || list === undefined ? [] : [list];
}

/** A number of the wire, also when it is an integral float; undefined for anything else. */
export function numberOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  if (typeof value === 'bigint' || value instanceof Number) return Number(value);
  return undefined;
}

const DURATION = /^\s*(-?[\d.]*(?:e[-+]?\d+)?)\s*([a-zµ]*)\s*$/i;
const UNITS_MS: Readonly<Record<string, number>> = {
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
};

/** A duration of Dask (`"100 ms"`, `"60s"`, seconds) in milliseconds; 0 when it is none. */
export function durationMs(duration: unknown): number {
  const seconds = numberOf(duration);
  if (seconds !== undefined) return seconds * 1000;
  if (typeof duration !== 'string') return 0;
  const [, digits = '', unit = ''] = DURATION.exec(duration) ?? [];
  const scale = UNITS_MS[unit] ?? UNITS_MS[unit.toLowerCase().replace(/(?<=..)s$/, '')];
  const count = digits === '' ? 1 : Number(digits);
  return scale === undefined || !Number.isFinite(count) ? 0 : count * scale;
}
