import type { ExecutableTask, ExecutionResult, FunctionSpec } from '../../../core/api/index.ts';
import { sharedMemoryOf } from '../../../core/util/shared-memory.ts';
import type {
  FunctionName,
  PostedResult,
  PostedTask,
  ResultColumns,
  RunColumns,
} from './messages.ts';
import { postedResult, postedTask, receivedResult, receivedTask } from './posted-bytes.ts';

/** Larger arguments and results travel for themselves. */
const PACKED_BYTES_MAX = 1024;

/** Small byte strings one after the other, in memory that grows and is used again. */
class Bytes {
  private memory = new Uint8Array(4096);
  private length = 0;

  /** Where it ends. */
  add(bytes: Uint8Array): number {
    const end = this.length + bytes.byteLength;
    if (end > this.memory.byteLength) {
      const larger = new Uint8Array(2 * end);
      larger.set(this.memory.subarray(0, this.length));
      this.memory = larger;
    }
    this.memory.set(bytes, this.length);
    this.length = end;
    return end;
  }

  get end(): number {
    return this.length;
  }

  /** All of them, as a copy. */
  take(): Uint8Array {
    const taken = this.memory.slice(0, this.length);
    this.length = 0;
    return taken;
  }
}

interface KnownFunction {
  readonly version: string;
  readonly position: number;
}

/** Writes runs for one thread, and remembers which functions it has received. */
export class RunWriter {
  private readonly known = new Map<string, Map<string, KnownFunction>>();
  private functionCount = 0;
  private readonly bytes = new Bytes();

  /** @param moved - buffers that are moved rather than copied */
  write(first: number, tasks: readonly ExecutableTask[], moved: ArrayBuffer[]): RunColumns {
    const keys: string[] = [];
    const newFunctions: FunctionName[] = [];
    const functions: number[] = [];
    const argsEnds: number[] = [];
    const others: [number, PostedTask][] = [];
    for (const task of tasks) {
      const spec = packableSpec(task);
      if (spec === undefined) {
        others.push([keys.length, postedTask(task, moved)]);
        functions.push(-1);
        argsEnds.push(this.bytes.end);
      } else {
        functions.push(this.positionOf(spec, newFunctions));
        argsEnds.push(this.bytes.add(spec.args));
      }
      keys.push(task.key);
    }
    return { first, keys, newFunctions, functions, args: this.bytes.take(), argsEnds, others };
  }

  /** What was written last has not arrived. */
  forget(): void {
    this.known.clear();
    this.bytes.take();
  }

  private positionOf({ module, name, version }: PackableSpec, added: FunctionName[]): number {
    let ofModule = this.known.get(module);
    if (ofModule === undefined) {
      ofModule = new Map<string, KnownFunction>();
      this.known.set(module, ofModule);
    }
    const known = ofModule.get(name);
    if (known?.version === version) return known.position;
    const position = this.functionCount++;
    ofModule.set(name, { version, position });
    added.push([position, module, name, version]);
    return position;
  }
}

/** A run with its number in the order of its thread. */
export type NumberedTask = ExecutableTask & { readonly number: number };

/** Reads runs in the thread. */
export class RunReader {
  private readonly functions: FunctionOfRuns[] = [];

  read(columns: RunColumns): NumberedTask[] {
    const { first, keys, newFunctions, functions, args, argsEnds } = columns;
    for (const [position, module, name, version] of newFunctions) {
      this.functions[position] = { module, name, version };
    }
    const others = new Map(columns.others);
    const tasks: NumberedTask[] = [];
    let start = 0;
    for (let index = 0; index < keys.length; index++) {
      const number = first + index;
      const key = keys[index] as string;
      const end = argsEnds[index] as number;
      const other = others.get(index);
      if (other === undefined) {
        const { module, name, version } = this.functions[
          functions[index] as number
        ] as FunctionOfRuns;
        const runSpec = { module, name, version, args: args.subarray(start, end) };
        tasks.push({ number, key, runSpec, inputs: NO_INPUTS });
      } else {
        tasks.push({ number, ...receivedTask(other) });
      }
      start = end;
    }
    return tasks;
  }
}

/** Gathers outcomes in the thread until they are sent. */
export class ResultWriter {
  private readonly bytes = new Bytes();
  private columns = emptyColumns();

  get isEmpty(): boolean {
    return this.columns.numbers.length === 0;
  }

  add(number: number, result: ExecutionResult): void {
    const { numbers, types, startsMs, stopsMs, valueEnds, others } = this.columns;
    const isPacked = result.kind === 'success' && isPackable(result.value);
    if (!isPacked) others.push([numbers.length, postedResult(result)]);
    types.push(isPacked ? result.type : '');
    startsMs.push(isPacked ? result.startMs : 0);
    stopsMs.push(isPacked ? result.stopMs : 0);
    valueEnds.push(isPacked ? this.bytes.add(result.value) : this.bytes.end);
    numbers.push(number);
  }

  take(): ResultColumns {
    const taken = { ...this.columns, values: this.bytes.take() };
    this.columns = emptyColumns();
    return taken;
  }
}

/** Calls back with each outcome. Small values are separate copies. */
export function readResults(
  columns: ResultColumns,
  offsetMs: number,
  tell: (number: number, result: ExecutionResult) => void,
): void {
  const { numbers, types, startsMs, stopsMs, values, valueEnds } = columns;
  const others = columns.others.length === 0 ? undefined : new Map(columns.others);
  let start = 0;
  for (let index = 0; index < numbers.length; index++) {
    const number = numbers[index] as number;
    const end = valueEnds[index] as number;
    const other = others?.get(index);
    if (other === undefined) {
      tell(number, {
        kind: 'success',
        value: values.slice(start, end),
        type: types[index] as string,
        startMs: (startsMs[index] as number) + offsetMs,
        stopMs: (stopsMs[index] as number) + offsetMs,
      });
    } else {
      const result = receivedResult(other);
      if (result.kind !== 'success') tell(number, result);
      else {
        const { startMs, stopMs } = result;
        tell(number, { ...result, startMs: startMs + offsetMs, stopMs: stopMs + offsetMs });
      }
    }
    start = end;
  }
}

const NO_INPUTS: ReadonlyMap<string, Uint8Array> = new Map();

interface PackableSpec {
  readonly module: string;
  readonly name: string;
  readonly version: string;
  readonly args: Uint8Array;
}

type FunctionOfRuns = Omit<PackableSpec, 'args'>;

function packableSpec({ runSpec, inputs }: ExecutableTask): PackableSpec | undefined {
  if (inputs.size > 0 || typeof runSpec !== 'object' || runSpec === null) return undefined;
  const { module, name, version, args, retry, persist } = runSpec as Partial<FunctionSpec>;
  const isSimple =
    typeof module === 'string' &&
    typeof name === 'string' &&
    typeof version === 'string' &&
    retry === undefined &&
    persist === undefined &&
    args instanceof Uint8Array &&
    isPackable(args);
  return isSimple ? (runSpec as PackableSpec) : undefined;
}

function isPackable(bytes: Uint8Array): boolean {
  return bytes.byteLength <= PACKED_BYTES_MAX && sharedMemoryOf(bytes) === undefined;
}

interface OpenColumns {
  readonly numbers: number[];
  readonly types: string[];
  readonly startsMs: number[];
  readonly stopsMs: number[];
  readonly valueEnds: number[];
  readonly others: [number, PostedResult][];
}

function emptyColumns(): OpenColumns {
  return { numbers: [], types: [], startsMs: [], stopsMs: [], valueEnds: [], others: [] };
}
