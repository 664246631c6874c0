/** Questions about tasks and workers that are answered from the tables alone. */
import type { TaskView } from '../../../../core/api/index.ts';
import { dialectOf } from '../../codec/dialect.ts';
import { Opaque } from '../../codec/index.ts';
import type { DaskContext, Fields, RpcTable } from '../../context.ts';
import { PythonException } from '../py-errors.ts';
import { asList, isFields } from '../../codec/values.ts';
import { workersMeant } from '../workers/calls.ts';
import { type Transition, transitionRow } from './transitions.ts';

export const TABLES: RpcTable = {
  ncores: (request, context) => threads(request, context, false),
  ncores_running: (request, context) => threads(request, context, true),
  who_has: (request, { cluster, keys, relay }) => {
    const asked = request['keys'];
    const tasks = cluster.tasks;
    const texts = asked === undefined || asked === null ? [...tasks.keys()] : keys.textsOf(asked);
    return new Map(
      texts.map((key) => [keys.wireOf(key), relay.sourcesOf(addressesOf(tasks.get(key)))]),
    );
  },
  has_what: (request, context) =>
    perWorker(request, context, (address) => {
      return keysOf(context, context.cluster.workers.get(address)?.hasWhat ?? []);
    }),
  processing: (request, context) =>
    perWorker(request, context, (address) => {
      return keysOf(context, context.cluster.workers.get(address)?.processing ?? []);
    }),
  nbytes: (request, context) => nbytes(request, context),
  get_task_status: (request, { cluster, keys }) =>
    new Map(
      (asList(request['keys']) ?? []).map((wire) => {
        return [wire, cluster.tasks.get(keys.textOf(wire))?.state ?? null];
      }),
    ),
  get_task_prefix_states: (_request, context) => prefixStates(context),
  get_story: (request, context) => story(request, context),
  get_runspec: (request, context) => runSpec(request, context),
  get_error_cause: (request, { cluster, keys }) => {
    for (const wire of asList(request['keys']) ?? []) {
      const blame = cluster.tasks.get(keys.textOf(wire))?.exceptionBlame;
      if (blame !== undefined) return keys.wireOf(blame.key);
    }
    return null;
  },
};

function addressesOf(task: TaskView | undefined): string[] {
  return (task?.whoHas.items ?? []).map(({ address }) => address);
}

function keysOf({ keys }: DaskContext, tasks: Iterable<TaskView>): unknown[] {
  return Array.from(tasks, ({ key }) => keys.wireOf(key));
}

function threads(request: Fields, context: DaskContext, onlyRunning: boolean): Map<string, number> {
  const found = new Map<string, number>();
  for (const address of addressesIn(request, context)) {
    const worker = context.cluster.workers.get(address);
    if (worker === undefined || (onlyRunning && worker.status !== 'running')) continue;
    found.set(address, worker.threadCount);
  }
  return found;
}

function perWorker<T>(
  request: Fields,
  context: DaskContext,
  read: (address: string) => T,
): Map<string, T> {
  return new Map(addressesIn(request, context).map((address) => [address, read(address)]));
}

/** The workers that a request names, by the addresses that they have; all when it names none. */
function addressesIn(request: Fields, context: DaskContext): string[] {
  const named = request['workers'];
  if (named === undefined || named === null) return [...context.workers.keys()];
  return (asList(named) ?? [named]).flatMap((which) => {
    const found = workersMeant(context, which).map(({ address }) => address);
    return found.length > 0 ? found : [String(which)];
  });
}

function nbytes(request: Fields, { cluster, keys }: DaskContext): Map<unknown, number> {
  const asked = request['keys'];
  const tasks =
    asked === undefined || asked === null
      ? [...cluster.tasks.values()].filter(({ nbytes: size }) => size >= 0)
      : keys.textsOf(asked).map((key) => {
          const task = cluster.tasks.get(key);
          if (task === undefined) throw new PythonException('KeyError', key);
          return task;
        });
  const sizes = new Map<unknown, number>();
  for (const task of tasks) {
    const name = request['summary'] === false ? keys.wireOf(task.key) : task.prefix.name;
    sizes.set(name, (sizes.get(name) ?? 0) + task.nbytes);
  }
  return sizes;
}

function prefixStates({ cluster }: DaskContext): Map<string, Fields> {
  const found = new Map<string, Fields>();
  for (const { name, states } of cluster.prefixes.values()) {
    const { memory, erred, released, processing, waiting } = states;
    if (memory + erred + released + processing + waiting === 0) continue;
    found.set(name, { memory, erred, released, processing, waiting });
  }
  return found;
}

function story(request: Fields, { plugin, keys }: DaskContext): unknown[] {
  const asked = request['keys_or_stimuli'] ?? request['keys'] ?? [];
  // Anything may be asked for; what cannot be a key has no story.
  const texts = (asList(asked) ?? [asked]).flatMap((each) => {
    try {
      return [keys.textOf(each)];
    } catch {
      return [];
    }
  });
  if (texts.length === 0) return []; // Without keys the scheduler gives all.
  const records = plugin.run('story', { keys: texts }) as readonly Transition[];
  return records.map((record) => transitionRow(record, keys));
}

/**
 * Since 2024.11.0 the task alone; before, the task (until 2023.8.0 in parts) and its inputs. What reads the
 * graphs has made the task, so the form is that of its release.
 */
function runSpec(request: Fields, { cluster, keys, graphs }: DaskContext): unknown {
  const { key } = request;
  const task = cluster.tasks.get(keys.textOf(key));
  if (task === undefined) throw new PythonException('KeyError', String(key));
  const { runSpec: spec, dependencies } = task;
  const { hasBareRunSpecs } = dialectOf(String(graphs.versions['distributed']));
  if (hasBareRunSpecs && spec instanceof Opaque && spec.kind === 'pickled') return spec;
  if (spec instanceof Opaque || isFields(spec)) {
    return { task: spec, deps: dependencies.map((dependency) => keys.wireOf(dependency.key)) };
  }
  throw new PythonException('ValueError', `${task.key} is not a task of Python`);
}
