import type { TaskView } from '../../../core/api/index.ts';
import type { DaskContext } from '../context.ts';

/**
 * Where the outputs of shuffles run. They start anywhere, find out which worker has their partition, and
 * are restricted to that one.
 */
export class OutputRestrictions {
  /** Workers and names of before, by key. */
  private readonly originals = new Map<string, readonly string[]>();

  constructor(private readonly context: DaskContext) {}

  /** No-op for a task of two shuffles, which agree on the worker. */
  restrict(task: TaskView, worker: string): void {
    if (this.originals.has(task.key)) return;
    const { workers = [], names = [] } = task.restrictions ?? {};
    this.originals.set(task.key, [...workers, ...names]);
    this.context.plugin.enqueue({
      op: 'set-restrictions',
      changes: [{ key: task.key, workers: [worker] }],
    });
  }

  /**
   * Excludes outputs from queuing: in the wrong place they run almost at once, so holding them back
   * would only delay the shuffle.
   */
  letGo(outputs: readonly TaskView[]): void {
    const changes = outputs.map(({ key }) => ({ key, isQueueable: false }));
    this.context.plugin.enqueue({ op: 'set-restrictions', changes });
  }

  /** Back to where they might run before. */
  restore(outputs: readonly TaskView[]): void {
    const changes = outputs.flatMap(({ key }) => {
      const workers = this.originals.get(key);
      this.originals.delete(key);
      return workers === undefined ? [] : [{ key, workers }];
    });
    if (changes.length > 0) this.context.plugin.enqueue({ op: 'set-restrictions', changes });
  }

  clear(): void {
    this.originals.clear();
  }
}
