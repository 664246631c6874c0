/** Puts the parts of a graph together that a helper has read. */
import { YardmasterError, type GraphTask } from '../../../core/api/index.ts';
import { Opaque } from '../codec/index.ts';
import { readAnnotations, type Annotated } from './annotations.ts';
import { namesOfWireKey } from './key-names.ts';
import { actorsOf, ranksOf, submissionOf, type GraphMessage } from './materialized.ts';
import type { HelperAnswer } from './python-helper.ts';
import { isRecord, itemsOf, type GraphContext, type UnpackedGraph } from './unpacked.ts';

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
      annotations.push(readAnnotations(isRecord(fresh) ? fresh : {}, context));
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
        dependencies: inputsOf(links[index], names),
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

function inputsOf(links: unknown, names: readonly string[]): string[] {
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
