/** Figures of the cluster under the names that Dask's scheduler gives them. O(prefixes + workers). */
import type { DaskContext, Fields } from '../../context.ts';

/** Tasks by state, all states included. */
export function tasksByState({ cluster }: DaskContext): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const { states } of cluster.prefixes.values()) {
    for (const [state, count] of Object.entries(states)) {
      found.set(state, (found.get(state) ?? 0) + count);
    }
  }
  return found;
}

/** `/json/counts.json` of Dask. */
export function countsOf(context: DaskContext): Fields {
  const { cluster } = context;
  const states = tasksByState(context);
  const hosts = new Set<string>();
  let [bytes, memory, processing] = [0, 0, 0];
  for (const worker of cluster.workers.values()) {
    hosts.add(worker.host);
    bytes += worker.nbytes;
    memory += worker.hasWhat.size;
    processing += worker.processing.size;
  }
  return {
    bytes,
    clients: context.clients.size,
    cores: cluster.totalThreads,
    erred: states.get('erred') ?? 0,
    hosts: hosts.size,
    idle: cluster.idle.size,
    memory,
    processing,
    released: states.get('released') ?? 0,
    saturated: cluster.saturated.size,
    tasks: cluster.tasks.size,
    unrunnable: cluster.unrunnable.size,
    waiting: states.get('waiting') ?? 0,
    workers: cluster.workers.size,
  };
}

interface Metric {
  readonly name: string;
  readonly help: string;
  /** Values, each with its labels in Prometheus' form. */
  readonly samples: readonly (readonly [labels: string, value: number])[];
}

/** What Prometheus reads, in its text format. */
export function prometheusText(context: DaskContext): string {
  return metricsOf(context)
    .flatMap(({ name, help, samples }) => [
      `# HELP dask_scheduler_${name} ${help}`,
      `# TYPE dask_scheduler_${name} gauge`,
      ...samples.map(([labels, value]) => `dask_scheduler_${name}${labels} ${value}`),
    ])
    .join('\n')
    .concat('\n');
}

function metricsOf(context: DaskContext): readonly Metric[] {
  const { cluster, clients } = context;
  const { idle, saturated, running, workers } = cluster;
  let paused = 0;
  for (const { status } of workers.values()) if (status === 'paused') paused++;
  const workerStates = {
    idle: idle.size,
    partially_saturated: Math.max(0, running.size - idle.size - saturated.size),
    saturated: saturated.size,
    paused,
    retiring: workers.size - paused - running.size,
  };
  return [
    { name: 'clients', help: 'Number of clients connected', samples: [['', clients.size]] },
    {
      name: 'workers',
      help: 'Number of workers known by scheduler',
      samples: Object.entries(workerStates).map(([state, n]) => [labelled(state), n]),
    },
    {
      name: 'tasks',
      help: 'Number of tasks known by scheduler',
      samples: [...tasksByState(context)]
        .filter(([state]) => state !== 'forgotten')
        .map(([state, n]) => [labelled(state), n]),
    },
    {
      name: 'task_groups',
      help: 'Number of task groups known by scheduler',
      samples: [['', cluster.groups.size]],
    },
  ];
}

function labelled(state: string): string {
  return `{state="${state}"}`;
}
