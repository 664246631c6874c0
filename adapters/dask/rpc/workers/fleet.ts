/** What clients do with workers: call them, retire them, size the cluster. */
import type { DaskContext, DaskWorker, Fields, RpcTable } from '../../context.ts';
import { durationMs } from '../../graph/unpacked.ts';
import { PythonException } from '../py-errors.ts';
import { metricsOf } from '../../bridge/translate-from-worker.ts';
import { amountsOf, isFields, listIn, numberIn, textIn } from '../../codec/values.ts';
import {
  broadcast,
  fieldsOf,
  onErrorIn,
  workerOf,
  workersIn,
  workersMeant,
  workersOnHosts,
} from './calls.ts';
import { workerState } from '../cluster/cluster-state.ts';
import { workerIdentity } from '../cluster/identity.ts';

export const FLEET: RpcTable = {
  broadcast: (request, context) => {
    const hosts = listIn(request, 'hosts');
    const named = workersIn(context, request['workers']);
    const workers =
      hosts === undefined ? named : [...(named ?? []), ...workersOnHosts(context, hosts)];
    return broadcast(context, {
      msg: callIn(request),
      ...(workers === undefined ? {} : { workers }),
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
      ...(workers === undefined ? {} : { workers }),
      nanny: request['nanny'] === true,
    });
  },
  benchmark_hardware: (_request, context) => benchmark(context),
  terminate: (_request, context) => {
    // The answer leaves first.
    context.clock.setTimer(10, () => context.shutDown());
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
  return key === 'host' ? { ...read, groupBy: 'host' } : read;
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
