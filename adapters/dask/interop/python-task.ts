/** Tasks of Python that clients of Node have submitted. */
import { YardmasterError } from '../../../core/api/index.ts';
import { isPlainObject } from '../../../core/util/plain-object.ts';
import { isMarked, type PythonCall } from '../python/index.ts';
import { unpackWith } from '../../tasks/index.ts';
import { encodeMessage, Opaque } from '../codec/index.ts';
import type { Dialect } from '../codec/dialect.ts';
import type { CallSpec } from '../graph/index.ts';
import type { KeyTable } from '../bridge/key-table.ts';
import { NotPortable, argumentRefused } from './refusal.ts';
import { Call, Name, Tuple, writePickle } from './write-pickle.ts';

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
  const parsed = (value: unknown): unknown => {
    if (value instanceof Input) return new Call(TASK_REF, [keys.wireOf(value.key)]);
    if (!hasInputs(value)) return isHarmless(value) ? value : later(value);
    return new Call(PARSE_INPUT, [mapMembers(value, parsed)]);
  };
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

function hasInputs(value: unknown): boolean {
  let isFound = false;
  const look = (member: unknown): unknown => {
    if (member instanceof Input) isFound = true;
    else if (!isFound) mapMembers(member, look);
    return member;
  };
  look(value);
  return isFound;
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
  const fill = (value: unknown): unknown =>
    value instanceof Input ? reference(value) : replaceInputs(value, reference);
  const filled = args.map(fill);
  const filledNamed = fill({ ...named });
  const plain = (value: unknown): unknown => keyTexts(value, inputs, key);
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

/** Keys become texts. @throws YardmasterError when another text would be taken for one of them */
function keyTexts(value: unknown, inputs: ReadonlySet<string>, key: string): unknown {
  if (value instanceof KeyText) return value.text;
  if (typeof value === 'string' && inputs.has(value)) {
    throw new YardmasterError(
      'ERR_GRAPH_INVALID',
      `an argument of "${key}" is the text "${value}", which is also the key of one of its inputs; workers with this Dask release cannot distinguish them`,
      { key, argument: value },
    );
  }
  return mapMembers(value, (member) => keyTexts(member, inputs, key));
}

/** A value with its inputs replaced; the very same when it has none. */
function replaceInputs(value: unknown, replace: (input: Input) => unknown): unknown {
  return mapMembers(value, (member) =>
    member instanceof Input ? replace(member) : replaceInputs(member, replace),
  );
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
