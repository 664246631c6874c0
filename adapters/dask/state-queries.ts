/** The questions of Python beside the scheduler about the state. Each is one look, without consequences. */
import type { TaskView, TransitionRecord } from '../../core/api/index.ts';
import type { DaskContext, RpcHandler, RpcTable } from './context.ts';
import { PythonException } from './wire/py-errors.ts';
import { transitionRow } from './cluster.ts';
import { listIn, textIn } from './wire/codec.ts';
import {
  clientFields,
  goneWorkerFields,
  groupFields,
  prefixFields,
  taskDetails,
  taskFields,
  taskLinks,
  workerFields,
} from './views.ts';

/** Tasks of one answer, so that no answer takes long. */
const PAGE_TASKS = 2000;

interface LogLine {
  readonly atMs: number;
  readonly level: string;
  readonly message: string;
}

/** Queries by name. The cost of each is proportional to its answer. */
export function stateQueries(context: DaskContext): RpcTable {
  return { ...taskQueries(context), ...tableQueries(context) };
}

/** Reads keys as they travel. */
function wiresIn({ keys }: DaskContext): (tasks: Iterable<TaskView>) => unknown[] {
  return (tasks) => Array.from(tasks, ({ key }) => keys.wireOf(key));
}

function taskQueries(context: DaskContext): RpcTable {
  const { cluster, keys } = context;
  const taskOf = (wire: unknown): TaskView | undefined => cluster.tasks.get(keys.textOf(wire));
  return {
    'state.numbers': () => ({
      tasks: cluster.tasks.size,
      total_nthreads: cluster.totalThreads,
      total_occupancy: cluster.totalOccupancyS,
      bandwidth: cluster.costs.bandwidth,
      generation: cluster.generation,
      transition_counter: context.tallies.transitionCount,
    }),
    'state.thread-history': () => context.tallies.threadHistory,
    'state.worker-metrics': () => context.tallies.workerMetrics,
    'state.task': (request) => {
      return (listIn(request, 'keys') ?? []).map((wire) => {
        const task = taskOf(wire);
        return task === undefined ? null : taskFields(context, task);
      });
    },
    'state.tasks': pages(context),
    'state.links': ({ key }) => {
      const task = taskOf(key);
      return task === undefined ? null : taskLinks(context, task);
    },
    'state.details': ({ key }) => {
      const task = taskOf(key);
      return task === undefined ? null : taskDetails(task);
    },
  };
}

function tableQueries(context: DaskContext): RpcTable {
  const { cluster } = context;
  const wires = wiresIn(context);
  return {
    'state.workers': () => {
      return Array.from(cluster.workers.values(), (worker) => workerFields(context, worker));
    },
    'state.gone': ({ address }) => goneWorkerFields(address),
    'state.worker-tasks': (request) => {
      const worker = cluster.workers.get(textIn(request, 'worker'));
      return {
        processing: wires(worker?.processing ?? []),
        has_what: wires(worker?.hasWhat ?? []),
        long_running: wires(worker?.longRunning ?? []),
        actors: wires(worker?.actors ?? []),
      };
    },
    'state.clients': () => {
      return Array.from(cluster.clients.values(), (client) => clientFields(context, client));
    },
    'state.client-tasks': (request) => {
      return wires(cluster.clients.get(textIn(request, 'client'))?.wantsWhat ?? []);
    },
    'state.groups': () => ({
      groups: Array.from(cluster.groups.values(), groupFields),
      prefixes: Array.from(cluster.prefixes.values(), prefixFields),
    }),
    'state.sets': ({ name }) => {
      switch (name) {
        case 'running':
        case 'idle':
        case 'saturated':
          return Array.from(cluster[name], ({ address }) => address);
        case 'queued':
          return wires(cluster.queued);
        case 'unrunnable':
          return wires(cluster.unrunnable.keys());
        case 'replicated':
          return wires(cluster.replicated);
        default:
          throw new PythonException('AttributeError', String(name));
      }
    },
    'state.logs': async () => {
      const { scheduler } = (await context.plugin.run('logs')) as { scheduler: readonly LogLine[] };
      return scheduler.map(({ atMs, level, message }) => [
        atMs / 1000,
        level === 'warn' ? 'WARNING' : level.toUpperCase(),
        message,
      ]);
    },
    'state.transitions': () => {
      const records = context.plugin.run('story', {}) as readonly TransitionRecord[];
      return records.map((record) => transitionRow(record, context.keys));
    },
    'state.plugins': () => ({ worker: context.workerPlugins, nanny: context.nannyPlugins }),
  };
}

/**
 * All tasks, a page for each request. The pages include tasks that appear meanwhile, and omit tasks
 * that disappear.
 */
function pages(context: DaskContext): RpcHandler {
  const begun = new Map<number, Iterator<TaskView>>();
  let count = 0;
  return ({ cursor }) => {
    let id = typeof cursor === 'number' ? cursor : undefined;
    const tasks = (id === undefined ? undefined : begun.get(id)) ?? context.cluster.tasks.values();
    const page: unknown[] = [];
    let next = tasks.next();
    while (next.done !== true) {
      page.push(taskFields(context, next.value));
      if (page.length >= PAGE_TASKS) break;
      next = tasks.next();
    }
    if (next.done === true) {
      if (id !== undefined) begun.delete(id);
      return { tasks: page, cursor: null };
    }
    if (id === undefined) begun.set((id = ++count), tasks);
    return { tasks: page, cursor: id };
  };
}
