import { YardmasterError } from '../../core/api/index.ts';
import { metricsOf } from './translate.ts';
import { amountsOf, type Fields, isFields, listIn, numberIn, textIn } from './wire/codec.ts';
import type { DaskContext, DaskWorker, RpcTable } from './context.ts';
import { durationMs } from './graph/materialized.ts';
import {
  broadcast,
  fieldsOf,
  onErrorIn,
  pauseMs,
  workerOf,
  workersIn,
  workersMeant,
  workersOnHosts,
} from './calls.ts';
import { workerState } from './cluster.ts';
import { workerIdentity } from './identity.ts';
import { PythonException } from './wire/py-errors.ts';

// What clients do with workers: call them, retire them, size the cluster.

export const FLEET: RpcTable = {
  broadcast: (request, context) => {
    const hosts = listIn(request, 'hosts');
    const named = workersIn(context, request['workers']);
    const workers =
      hosts === undefined ? named : [...(named ?? []), ...workersOnHosts(context, hosts)];
    return broadcast(context, {
      msg: callIn(request),
      workers,
      nanny: request['nanny'] === true,
      onError: onErrorIn(request),
    });
  },
  proxy: async (request, context) => {
    const worker = workerOf(context, request['worker']);
    const answers = await broadcast(context, { msg: callIn(request), workers: [worker] });
    return answers.get(worker.address);
  },
  retire_workers: (request, context) => retire(request, context),
  workers_to_close: (request, context) => {
    const found = context.plugin.run('amm.workersToClose', toClose(request));
    const chosen = found as readonly { readonly address: string; readonly name: string }[];
    const { attribute = 'address' } = request;
    return chosen.map(({ address }) => attributeOf(context, address, String(attribute)));
  },
  adaptive_target: (request, { plugin, options }) => {
    const given = request['target_duration'] ?? undefined;
    const target = given === undefined ? options.targetDurationMs : durationMs(given);
    return plugin.run('amm.adaptiveTarget', { targetDurationMs: target });
  },
  set_resources: (request, context) => setResources(request, context),
  worker_logs: (request, context) => {
    const workers = workersIn(context, request['workers']);
    return broadcast(context, {
      msg: { op: 'get_logs', n: request['n'] ?? null },
      workers,
      nanny: request['nanny'] === true,
    });
  },
  benchmark_hardware: (_request, context) => benchmark(context),
  terminate: (_request, context) => {
    // The answer leaves first.
    context.clock.setTimer(10, () => context.plugin.shutDown());
    return 'OK';
  },
};

function callIn(request: Fields): Fields {
  const { msg, serializers } = request;
  if (!isFields(msg)) throw new PythonException('TypeError', 'msg has to be a map with op');
  if (serializers === undefined || serializers === null) return msg;
  return { ...msg, serializers };
}

async function retire(request: Fields, context: DaskContext): Promise<Map<string, Fields>> {
  const named = listIn(request, 'names')?.map(String);
  const addresses = listIn(request, 'workers');
  if (named !== undefined && addresses !== undefined) {
    throw new PythonException('TypeError', 'names and workers are mutually exclusive');
  }
  const workers = addresses
    ?.flatMap((which) => workersMeant(context, which))
    .map(({ address }) => address);
  const close = request['close_workers'] === true;
  const identities = new Map(
    [...context.workers.values()].map((worker) => {
      return [worker.address, workerIdentity(context, worker)] as const;
    }),
  );
  const given =
    workers === undefined && named === undefined
      ? { close, ...toClose(request) }
      : { close, ...(workers === undefined ? { names: named } : { workers }) };
  const { retired } = fieldsOf(await context.plugin.run('amm.retireWorkers', given), 'retirement');
  const gone = (retired as readonly { readonly address: string }[]).map(({ address }) => address);
  if (!close && request['remove'] !== false) {
    for (const worker of gone) {
      context.plugin.enqueue({ op: 'remove-worker', worker, expected: true, close: false });
      context.forgetWorker(worker);
    }
  }
  return new Map(gone.map((address) => [address, identities.get(address) ?? {}]));
}

/** Which workers are wanted least. */
function toClose(request: Fields): Fields {
  const { key } = request;
  if (key !== undefined && key !== null && key !== 'host') {
    throw new PythonException(
      'NotImplementedError',
      'workers can be grouped by "host"; a function for grouping would need Python in the scheduler',
    );
  }
  const read = {
    n: numberIn(request, 'n'),
    target: numberIn(request, 'target'),
    minimum: numberIn(request, 'minimum'),
    memoryRatio: numberIn(request, 'memory_ratio'),
  };
  return key === 'host' ? { ...read, key } : read;
}

function attributeOf(context: DaskContext, address: string, attribute: string): unknown {
  const worker = context.workers.get(address);
  if (attribute === 'address') return address;
  if (worker !== undefined) {
    const known = { ...workerState(context, worker), ...workerIdentity(context, worker) };
    if (Object.hasOwn(known, attribute)) return known[attribute];
  }
  throw new PythonException(
    'AttributeError',
    `'WorkerState' object has no attribute '${attribute}'`,
  );
}

function setResources(request: Fields, context: DaskContext): string {
  const worker = workerOf(context, textIn(request, 'worker'));
  context.plugin.enqueue({
    op: 'heartbeat-worker',
    worker: worker.address,
    metrics: metricsOf(worker.metrics),
    executing: [],
    workerNowMs: context.clock.nowMs(),
    resources: amountsOf(request['resources']),
  });
  return 'OK';
}

type Timings = Map<string, Map<string, number[]>>;

/** Bandwidths of disk, memory and network by size, averaged over the workers. */
async function benchmark(context: DaskContext): Promise<Map<string, Map<string, number>>> {
  const timings: Timings = new Map();
  for (const name of ['disk', 'memory', 'network']) timings.set(name, new Map());
  for (const name of ['disk', 'memory'] as const) {
    const answers = await broadcast(context, { msg: { op: `benchmark_${name}` } });
    for (const answer of answers.values()) collect(timings, name, answer);
  }
  const workers = [...context.workers.values()];
  const pairs: [DaskWorker, DaskWorker][] = [];
  for (let index = 0; index + 1 < workers.length; index += 2) {
    pairs.push([workers[index] as DaskWorker, workers[index + 1] as DaskWorker]);
  }
  const answers = await Promise.all(
    pairs.map(([one, other]) => {
      return context.pool.call(one.address, 'benchmark_network', { address: other.address });
    }),
  );
  for (const answer of answers) collect(timings, 'network', answer);
  return new Map(
    [...timings].map(([name, sizes]) => [
      name,
      new Map(
        [...sizes].map(([size, found]) => [size, found.reduce((a, b) => a + b, 0) / found.length]),
      ),
    ]),
  );
}

function collect(timings: Timings, name: string, answer: unknown): void {
  const sizes = timings.get(name) ?? new Map<string, number[]>();
  timings.set(name, sizes);
  for (const [size, value] of Object.entries(amountsOf(answer))) {
    sizes.set(size, [...(sizes.get(size) ?? []), value]);
  }
}

/** Requests by which workers and nannies register, report and leave. */
export const MEMBERSHIP: RpcTable = {
  heartbeat_worker: (request, context) => {
    const worker = context.workers.get(textIn(request, 'address'));
    if (worker === undefined) return { status: 'missing' };
    worker.heartbeat(request);
    context.tallies.addMetrics(request);
    return {
      status: 'OK',
      time: context.nowS(),
      'heartbeat-interval': context.heartbeatIntervalS(),
    };
  },
  register_nanny: (request, context, comm) => {
    // Since 2023.9 it names itself, and says on this connection when its worker has started.
    if (request['address'] !== undefined) context.nannyStarts.begin(comm);
    return { status: 'OK', 'nanny-plugins': context.nannyPlugins };
  },
  // A nanny says so when the process of its worker has ended, however it did.
  unregister: (request, context) => removeWorker(context, request),
  remove_worker: (request, context) => removeWorker(context, request),
};

function removeWorker(context: DaskContext, request: Fields): 'OK' | 'already-removed' {
  const worker = textIn(request, 'address');
  if (!context.cluster.workers.has(worker)) return 'already-removed';
  const isLeaving = context.cluster.workers.get(worker)?.status.startsWith('clos') === true;
  context.plugin.enqueue({ op: 'remove-worker', worker, expected: isLeaving, close: true });
  return 'OK';
}

// Plugins of workers and nannies: kept here for later ones, and sent to the present ones.

export const PLUGINS: RpcTable = {
  register_worker_plugin: (request, context) => add(request, context, 'worker'),
  unregister_worker_plugin: (request, context) => remove(request, context, 'worker'),
  register_nanny_plugin: (request, context) => add(request, context, 'nanny'),
  unregister_nanny_plugin: (request, context) => remove(request, context, 'nanny'),
};

type Of = 'worker' | 'nanny';

/** Workers and nannies spell it differently. */
const OPS = {
  worker: { add: 'plugin-add', remove: 'plugin-remove' },
  nanny: { add: 'plugin_add', remove: 'plugin_remove' },
} as const;

function tableOf({ workerPlugins, nannyPlugins }: DaskContext, of: Of): Map<string, unknown> {
  return of === 'worker' ? workerPlugins : nannyPlugins;
}

async function add(request: Fields, context: DaskContext, of: Of): Promise<Map<string, unknown>> {
  const { plugin } = request;
  const name = textIn(request, 'name');
  const table = tableOf(context, of);
  if (request['idempotent'] === true && table.has(name)) return new Map();
  table.set(name, plugin);
  if (of === 'nanny') await context.nannyStarts.over();
  const msg = { op: OPS[of].add, plugin, name };
  return broadcast(context, { msg, nanny: of === 'nanny' });
}

async function remove(
  request: Fields,
  context: DaskContext,
  of: Of,
): Promise<Map<string, unknown>> {
  const name = textIn(request, 'name');
  if (!tableOf(context, of).delete(name)) {
    throw new PythonException('ValueError', `The ${of} plugin ${name} does not exist`);
  }
  return broadcast(context, { msg: { op: OPS[of].remove, name }, nanny: of === 'nanny' });
}

// `restart` and `restart_workers`: new processes, and no tasks.

export const RESTART: RpcTable = {
  restart: async (request, context) => {
    context.plugin.enqueue({ op: 'restart' });
    await restartWorkers(context, [...context.workers.values()], optionsOf(request));
    return null;
  },
  restart_workers: (request, context) => {
    const workers = workersIn(context, request['workers']) ?? [...context.workers.values()];
    return restartWorkers(context, workers, optionsOf(request));
  },
};

interface RestartOptions {
  readonly timeoutMs: number;
  /** Wait until as many workers are there as before. */
  readonly wait: boolean;
  readonly raises: boolean;
}

/** Milliseconds between two checks for workers that are back. */
const LOOK_MS = 100;

function optionsOf(request: Fields): RestartOptions {
  const { timeout } = request;
  return {
    timeoutMs: timeout === undefined || timeout === null ? 30_000 : durationMs(timeout),
    wait: request['wait_for_workers'] !== false,
    raises: request['on_error'] !== 'return',
  };
}

/** Restarts workers. @returns the outcome of each, by address: `OK`, `removed`, `timed out`, or the nanny's failure. */
async function restartWorkers(
  context: DaskContext,
  workers: readonly DaskWorker[],
  { timeoutMs, wait, raises }: RestartOptions,
): Promise<Map<string, string>> {
  const countBefore = context.workers.size;
  const deadlineMs = context.clock.nowMs() + timeoutMs;
  const outcome = new Map<string, string>();
  const nannied = workers.filter(({ nanny }) => nanny !== undefined);
  const others = workers.filter(({ nanny }) => nanny === undefined);
  for (const { address } of others) {
    context.plugin.enqueue({ op: 'remove-worker', worker: address, expected: true, close: true });
    outcome.set(address, 'removed');
  }
  await Promise.all(
    nannied.map(async (worker) => {
      outcome.set(worker.address, await kill(context, worker, timeoutMs));
    }),
  );
  const bad = [...outcome]
    .filter(([, what]) => what !== 'OK' && what !== 'removed')
    .map(([address]) => address);
  for (const worker of bad) {
    context.plugin.enqueue({ op: 'remove-worker', worker, expected: true, close: true });
  }
  if (bad.length > 0 && raises) {
    throw new PythonException(
      'TimeoutError',
      `${bad.length}/${nannied.length} nanny worker(s) did not shut down within ${timeoutMs / 1000}s: ${bad.map((address) => `${address} ${outcome.get(address)}`).join(', ')}`,
    );
  }
  await gone(context, workers, deadlineMs);
  if (wait)
    await back(context, { countBefore, deadlineMs, timeoutMs, raises, others: others.length });
  return outcome;
}

/** Asks the nanny to end the process of its worker; the nanny starts the next one by itself. */
async function kill(context: DaskContext, worker: DaskWorker, timeoutMs: number): Promise<string> {
  try {
    const parameters = { reason: 'scheduler-restart', timeout: timeoutMs / 1000 };
    await context.pool.call(String(worker.nanny), 'kill', parameters, { timeoutMs });
    return 'OK';
  } catch (error) {
    context.log.warn({ err: error, worker: worker.address }, 'a worker could not be restarted');
    return YardmasterError.is(error, 'ERR_TIMEOUT') ? 'timed out' : (error as Error).message;
  }
}

/** The old ones leave when their connections end. */
async function gone(
  context: DaskContext,
  workers: readonly DaskWorker[],
  deadlineMs: number,
): Promise<void> {
  while (workers.some((worker) => context.workers.get(worker.address) === worker)) {
    if (context.clock.nowMs() >= deadlineMs) return;
    await pauseMs(context, LOOK_MS);
  }
}

interface Awaited {
  readonly countBefore: number;
  readonly deadlineMs: number;
  readonly timeoutMs: number;
  readonly raises: boolean;
  /** Workers without a nanny that would restart them. */
  readonly others: number;
}

async function back(context: DaskContext, awaited: Awaited): Promise<void> {
  const { countBefore, deadlineMs, timeoutMs, raises, others } = awaited;
  while (context.workers.size < countBefore) {
    if (context.clock.nowMs() >= deadlineMs) {
      if (!raises) return;
      const hint =
        others === 0
          ? ''
          : ` The ${others} worker(s) not using Nannies were just shut down instead of restarted (restart is only possible with Nannies).`;
      throw new PythonException(
        'TimeoutError',
        `Waited for ${countBefore} worker(s) to reconnect after restarting, but after ${timeoutMs / 1000}s, only ${context.workers.size} have returned. Consider a longer timeout, or \`wait_for_workers=False\`.${hint}`,
      );
    }
    await pauseMs(context, LOOK_MS);
  }
}
