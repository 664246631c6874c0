/** Events of the scheduler, in the form that the hooks of scheduler plugins in Python receive. */
import type { TaskView } from '../../../core/api/index.ts';
import type { DaskContext, ExtensionHooks, Fields } from '../context.ts';
import type { CompanionEvent } from './outbox.ts';
import { taskFieldsNow } from './views.ts';

/** Fields of a worker's report that Dask does not hand to plugins. */
const REPORT_ENVELOPE: ReadonlySet<string> = new Set(['op', 'key', 'stimulus_id', 'run_id']);

/** Where events come from and go to. */
interface EventFeedPort {
  readonly context: DaskContext;
  /** Whether a plugin has this hook. */
  isWanted(hook: string): boolean;
  send(event: CompanionEvent): void;
}

/** Makes an event of what happens, when a plugin wants it. Otherwise it is one look at a set. */
export class EventFeed {
  /** What workers reported of tasks whose transition is about to follow, by key. */
  private readonly reports = new Map<string, Fields>();

  constructor(private readonly port: EventFeedPort) {}

  /** Called when a worker has reported the end of a task. */
  readonly onReport = (
    message: Fields,
    key: string,
    worker: { readonly address: string },
  ): void => {
    if (!this.port.isWanted('transition')) return;
    const fields = Object.entries(message).filter(([name]) => !REPORT_ENVELOPE.has(name));
    this.reports.set(key, { ...Object.fromEntries(fields), worker: worker.address });
  };

  readonly hooks: ExtensionHooks = {
    taskTransition: (task, start, finish, stimulusId, details) => {
      const { port } = this;
      if (!port.isWanted('transition')) return;
      const report = start === 'processing' ? this.reports.get(task.key) : undefined;
      if (report !== undefined || finish === 'forgotten') this.reports.delete(task.key);
      const { keys } = port.context;
      const { cause, worker } = details;
      const outcome: Record<string, unknown> = report === undefined ? {} : { ...report };
      if (worker !== undefined) outcome['worker'] = worker;
      if (cause !== undefined) outcome['cause'] = keys.wireOf(cause);
      const fields = taskFieldsNow(port.context, task);
      port.send(['transition', fields[0], start, finish, stimulusId, fields, outcome]);
    },
    graphUpdated: ({ client, keys, tasks, stimulusId }) => {
      const { port } = this;
      if (!port.isWanted('update_graph')) return;
      const table = port.context.keys;
      const wires = keys.map((key) => table.wireOf(key));
      const listed = tasks.map((task) => this.listed(task));
      port.send(['update_graph', { client, keys: wires, tasks: listed, stimulus_id: stimulusId }]);
    },
    workerAdded: ({ address }) => this.send('add_worker', address),
    workerRemoved: ({ address }, stimulusId) => this.send('remove_worker', address, stimulusId),
    clientAdded: ({ key }) => this.send('add_client', key),
    clientRemoved: ({ key }) => this.send('remove_client', key),
    eventLogged: (topic, message) => this.send('log_event', topic, message),
  };

  restarted(): void {
    this.send('restart');
  }

  /** Nothing is wanted any more. */
  clear(): void {
    this.reports.clear();
  }

  private send(name: string, ...fields: unknown[]): void {
    if (this.port.isWanted(name)) this.port.send([name, ...fields]);
  }

  private listed({ key, priority, dependencies, annotations }: TaskView): unknown[] {
    const { keys } = this.port.context;
    return [
      keys.wireOf(key),
      priority ?? null,
      dependencies.map((input) => keys.wireOf(input.key)),
      annotations ?? null,
    ];
  }
}
