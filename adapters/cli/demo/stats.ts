import type {
  PluginContext,
  SchedulerPlugin,
  TaskStateName,
  TaskView,
  TransitionDetails,
  WorkerView,
} from '../../../core/api/index.ts';

const SAMPLE_INTERVAL_MS = 200;

/** Counts what the demo reports at its end. An ordinary scheduler plugin. */
export class DemoStats implements SchedulerPlugin {
  readonly name = 'demo-stats';
  /** Runs that have ended, also of a task whose result was lost. */
  tasksDone = 0;
  private readonly done = new Set<string>();
  /** Bytes of results that tasks needed on a worker which did not hold them. */
  movedBytes = 0;
  /** Largest resident set of each worker, by name, according to its heartbeats. */
  readonly peakBytes = new Map<string, number>();
  /** Called after each finished task, with the name of its worker; whether it had been finished before. */
  onDone: (key: string, worker: string, isAgain: boolean) => void = () => undefined;
  private nameOf: (address: string) => string = (address) => address;
  /** What was counted as moved: each result goes to a worker once. */
  private readonly moved = new Map<WorkerView, Set<string>>();

  /** Tasks that were computed once more. */
  get tasksAgain(): number {
    return this.tasksDone - this.done.size;
  }

  setup({ every, cluster }: Pick<PluginContext, 'every' | 'cluster'>): void {
    this.nameOf = (address) => cluster.workers.get(address)?.name ?? address;
    every(SAMPLE_INTERVAL_MS, () => {
      for (const { name, metrics } of cluster.workers.values()) {
        this.peakBytes.set(name, Math.max(this.peakBytes.get(name) ?? 0, metrics.memoryBytes));
      }
    });
  }

  taskTransition(
    task: TaskView,
    start: TaskStateName,
    finish: TaskStateName,
    _stimulusId: string,
    details: TransitionDetails,
  ): void {
    if (finish === 'processing' && task.processingOn !== undefined) {
      for (const input of task.dependencies) this.countMove(input, task.processingOn);
    } else if (start === 'processing' && finish === 'memory') {
      const isAgain = this.done.has(task.key);
      this.done.add(task.key);
      this.tasksDone++;
      this.onDone(task.key, this.nameOf(details.worker ?? ''), isAgain);
    }
  }

  private countMove(input: TaskView, worker: WorkerView): void {
    if (input.whoHas.has(worker)) return;
    const known = this.moved.get(worker) ?? new Set<string>();
    this.moved.set(worker, known);
    if (known.has(input.key)) return;
    known.add(input.key);
    this.movedBytes += Math.max(0, input.nbytes);
  }
}
