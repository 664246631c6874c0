import {
  type ClientReport,
  type FunctionSpec,
  type GraphTask,
  YardmasterError,
} from '../../core/api/index.ts';

/** Bytes of a message besides the value that it carries: names, keys, options. */
const ENVELOPE_BYTES = 1024;

/**
 * Memory for a serialised value that has to fit into one message.
 *
 * @param messageBytesMax - of the connection; Infinity: no limit
 * @param what - how the message calls the value: `the arguments`
 * @param isShared - whether in shared memory, which the engine does not count when it looks for garbage. Default false
 * @throws YardmasterError `ERR_FRAME` with the size and the limit
 */
export function allocateWithin(
  messageBytesMax: number,
  what: string,
  isShared = false,
): (nbytes: number) => Uint8Array {
  return (nbytes) => {
    checkFits(nbytes, messageBytesMax, what);
    return new Uint8Array(isShared ? new SharedArrayBuffer(nbytes) : new ArrayBuffer(nbytes));
  };
}

/** @throws YardmasterError `ERR_FRAME` with the size and the limit, as for {@link allocateWithin} */
export function checkFits(nbytes: number, messageBytesMax: number, what: string): void {
  const bytesMax = messageBytesMax - ENVELOPE_BYTES;
  if (nbytes <= bytesMax) return;
  throw new YardmasterError(
    'ERR_FRAME',
    `${what} of ${nbytes} bytes cannot be sent: the limit of one message between client, scheduler and workers leaves ${bytesMax} bytes; split the value, have tasks read it where they run, or raise frameBytesMax of the transport everywhere`,
    { nbytes, nbytesMax: bytesMax },
  );
}

/** Tasks that travel in one message. */
const PART_TASKS = 1000;
/** Bytes of tasks in one message, unless one task alone has more. */
const PART_BYTES = 16 * 1024 * 1024;
/** Of a task besides its arguments: key, dependencies, function, options. A guess. */
const TASK_BYTES = 512;

type Part = Extract<ClientReport, { readonly op: 'graph-part' }>;
type Submitted = Extract<ClientReport, { readonly op: 'update-graph' }>;

/**
 * A graph as it is sent: a large one in parts, so that neither side is busy for long with any of them, and
 * none exceeds the limit of a message for being one of many. The last one is the `update-graph` itself.
 * @param messageBytesMax - of the connection. Default: no limit
 */
export function inParts(
  graph: Submitted,
  messageBytesMax = Infinity,
): readonly (Part | Submitted)[] {
  const { tasks, keys } = graph;
  const ends = partEnds(tasks, Math.min(PART_BYTES, messageBytesMax / 2));
  const parts = Math.max(ends.length, Math.ceil(keys.length / PART_TASKS)) - 1;
  if (parts <= 0) return [graph];
  const part = (index: number): Pick<Part, 'tasks' | 'keys'> => ({
    tasks: tasks.slice(ends[index - 1] ?? (index === 0 ? 0 : tasks.length), ends[index]),
    keys: keys.slice(index * PART_TASKS, (index + 1) * PART_TASKS),
  });
  return [
    ...Array.from({ length: parts }, (_, index) => ({
      op: 'graph-part' as const,
      stimulusId: graph.stimulusId,
      ...part(index),
    })),
    { ...graph, ...part(parts), parts },
  ];
}

/** The index at which each part of the tasks ends. O(tasks). */
function partEnds(tasks: readonly GraphTask[], bytesMax: number): number[] {
  const ends: number[] = [];
  let [begin, nbytes] = [0, 0];
  for (const [index, task] of tasks.entries()) {
    const { args } = (task.runSpec ?? {}) as Partial<FunctionSpec>;
    const size = TASK_BYTES + (args?.byteLength ?? 0);
    const isFull = index - begin >= PART_TASKS || nbytes + size > bytesMax;
    if (isFull && index > begin) {
      ends.push(index);
      [begin, nbytes] = [index, 0];
    }
    nbytes += size;
  }
  ends.push(tasks.length);
  return ends;
}
