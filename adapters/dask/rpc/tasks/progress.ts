/** How far a set of tasks is, as `distributed.diagnostics.progress` counts it. */
import type { TaskStateName, TaskView } from '../../../../core/api/index.ts';
import type { Fields } from '../../context.ts';

/** What a progress bar shows. */
interface ProgressRequest {
  readonly tasks: readonly TaskView[];
  /** Also counts what was finished before. */
  readonly complete: boolean;
  /** One bar for each operation. */
  readonly byPrefix: boolean;
}

/** Follows tasks and all that they need. O(tasks below) to begin with, O(1) for each transition. */
export class Progress {
  /** Prefixes by key. */
  private readonly all: ReadonlyMap<string, string>;
  private readonly left: Map<string, string>;
  private ending:
    { readonly status: 'finished' } | { readonly status: 'error'; key: string } | undefined;

  constructor(
    private readonly request: ProgressRequest,
    /** Returns the exception of a failed task in the form that clients receive. */
    private readonly exceptionOf: (key: string) => unknown,
  ) {
    const { tasks, complete } = request;
    const counted = neededBy(tasks, complete);
    this.left = new Map(complete ? neededBy(tasks, false).found : counted.found);
    this.all = new Map([...counted.found, ...tasks.map(entryOf)]);
    const [failed] = counted.failed;
    if (failed !== undefined) this.ending = { status: 'error', key: failed };
    else if (this.left.size === 0) this.ending = { status: 'finished' };
  }

  get isOver(): boolean {
    return this.ending !== undefined;
  }

  onTransition(key: string, start: TaskStateName, finish: TaskStateName): void {
    if (this.ending !== undefined || !this.all.has(key)) return;
    if (finish === 'memory' && start === 'processing') {
      this.left.delete(key);
      if (this.left.size === 0) this.ending = { status: 'finished' };
    } else if (finish === 'erred' || (finish === 'forgotten' && this.left.has(key))) {
      this.ending = { status: 'error', key };
    }
  }

  /** All tasks were forgotten. */
  stop(): void {
    this.ending ??= { status: 'finished' };
  }

  /** As the bar of the client wants it. */
  describe(): Fields {
    const { byPrefix } = this.request;
    const counts = byPrefix
      ? { all: this.countsOf(this.all), remaining: this.countsOf(this.left) }
      : { all: this.all.size, remaining: this.left.size };
    if (this.ending?.status !== 'error') return { ...counts, status: this.ending?.status ?? null };
    const { status, key } = this.ending;
    return { ...counts, status, key, exception: this.exceptionOf(key) };
  }

  /** Prefixes without any such task count 0. */
  private countsOf(keys: ReadonlyMap<string, string>): Map<string, number> {
    const counts = new Map([...this.all.values()].map((prefix) => [prefix, 0]));
    for (const prefix of keys.values()) counts.set(prefix, (counts.get(prefix) ?? 0) + 1);
    return counts;
  }
}

function entryOf({ key, prefix }: TaskView): [key: string, prefix: string] {
  return [key, prefix.name];
}

/** The tasks and what they need. @param complete - also where there is a result already */
function neededBy(
  tasks: readonly TaskView[],
  complete: boolean,
): { readonly found: Map<string, string>; readonly failed: string[] } {
  const found = new Map<string, string>();
  const failed: string[] = [];
  const stack = [...tasks];
  for (let task = stack.pop(); task !== undefined; task = stack.pop()) {
    if (found.has(task.key) || (!complete && task.whoHas.size > 0)) continue;
    if (task.state === 'erred') failed.push(task.key);
    found.set(...entryOf(task));
    stack.push(...task.dependencies);
  }
  return { found, failed };
}
