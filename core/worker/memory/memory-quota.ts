import { prefixOfKey } from '../../state/key-names.ts';
import { parseBytes } from '../../util/units.ts';
import type { WorkerTask } from '../worker-task.ts';

/** Kinds of tasks whose results are remembered; the one that was seen first is forgotten. */
const KINDS_MAX = 10_000;
/** How much a result more counts in what is expected of the next one of its kind. */
const LEARNING_RATE = 0.5;

/** How a worker admits tasks by what they are expected to use. */
export interface MemoryQuotaOptions {
  /** Bytes that running tasks may be expected to use together. Above 0. */
  readonly quotaBytes: number;
  /** Bytes of the whole process beyond which no task begins beside others; Infinity: no such limit. */
  readonly hardLimitBytes: number;
}

/**
 * Admission as Mars has it: a task asks for the memory that it is expected to use, and begins when that fits beside
 * what those that run have asked for. The first that does not fit holds back those behind it, so that it is
 * not starved; when nothing runs it fits in any case.
 */
export class MemoryQuota {
  private readonly granted = new Map<WorkerTask, number>();
  private grantedTotal = 0;
  /** Mean size of results, the newest counting most, by {@link kindOf}. */
  private readonly resultBytes = new Map<string, number>();
  /** What the process occupies, as last heard. */
  processBytes = 0;

  constructor(readonly options: MemoryQuotaOptions) {}

  /** Bytes that running tasks have asked for. */
  get grantedBytes(): number {
    return this.grantedTotal;
  }

  /**
   * Bytes: what its annotation `memory` says (a number, or text such as `2 GiB`); else its own copies of the
   * inputs, and twice the result that the same function had lately: the value and its bytes. Without one yet, as
   * much as the inputs.
   */
  needOf(task: WorkerTask): number {
    const said = annotatedBytes(task);
    if (said !== undefined) return said;
    let inputBytes = 0;
    for (const dependency of task.dependencies) inputBytes += dependency.nbytes;
    return inputBytes + 2 * (this.resultBytes.get(kindOf(task)) ?? inputBytes / 2);
  }

  /** Whether the task may begin now. */
  admits(task: WorkerTask): boolean {
    if (this.granted.size === 0) return true;
    const { quotaBytes, hardLimitBytes } = this.options;
    const need = this.needOf(task);
    return this.grantedTotal + need <= quotaBytes && this.processBytes + need < hardLimitBytes;
  }

  /** Whether the task says that it needs more than there ever is. */
  isTooLarge(task: WorkerTask): boolean {
    const said = annotatedBytes(task);
    return said !== undefined && said > this.options.quotaBytes;
  }

  grant(task: WorkerTask): void {
    const need = this.needOf(task);
    this.granted.set(task, need);
    this.grantedTotal += need;
  }

  /** The run of a task has ended. */
  release(task: WorkerTask): void {
    this.grantedTotal -= this.granted.get(task) ?? 0;
    this.granted.delete(task);
  }

  /** Learns from a result. */
  learn(task: WorkerTask, nbytes: number): void {
    const { resultBytes } = this;
    const kind = kindOf(task);
    const known = resultBytes.get(kind);
    const next = known === undefined ? nbytes : known + LEARNING_RATE * (nbytes - known);
    resultBytes.set(kind, next);
    if (resultBytes.size <= KINDS_MAX) return;
    const [oldest = kind] = resultBytes.keys();
    resultBytes.delete(oldest);
  }
}

/** Tasks of one kind have results of one size: those of one function, whatever their keys. */
function kindOf({ key, runSpec }: WorkerTask): string {
  const { module, name } = (
    typeof runSpec === 'object' && runSpec !== null ? runSpec : {}
  ) as Readonly<Record<string, unknown>>;
  if (typeof module === 'string' && typeof name === 'string') return `${name} of ${module}`;
  return prefixOfKey(key);
}

/** Undefined: it does not say, or not in a way that can be read. */
function annotatedBytes({ annotations }: WorkerTask): number | undefined {
  const said = annotations?.['memory'];
  const nbytes = said === undefined ? undefined : parseBytes(said);
  return nbytes === undefined || !(nbytes >= 0) ? undefined : nbytes;
}
