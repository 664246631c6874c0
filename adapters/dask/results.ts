import { dataItems } from './client-bridge.ts';
import { stimulusOf } from './translate.ts';
import { entriesOf, type Fields, listIn, numberIn, toNumber } from './wire/codec.ts';
import { type Comm, NO_REPLY, releaseFrames } from './wire/comm.ts';
import type { DaskContext, DaskWorker, RpcTable } from './context.ts';
import { fieldsOf, pauseMs, workerOf, workersIn, workersMeant } from './calls.ts';
import { PythonException } from './wire/py-errors.ts';
import { rebalance } from './tasks.ts';

// Results: where they are, bringing them in and out.

/** A worker that sends too much already is asked again after this. */
const BUSY_PAUSE_MS = 100;
/** Between two looks for a worker. */
const LOOK_MS = 100;

export const RESULTS: RpcTable = {
  gather: (request, context, comm) => answerGather(request, context, comm),
  get_data: (request, context) => relayed(request, context),
  scatter: (request, context) => scatter(request, context),
  update_data: (request, context) => {
    const { client } = request;
    const items = dataItems(request, context.keys);
    const isNamed = typeof client === 'string' && client !== '';
    context.plugin.enqueue({ op: 'update-data', items, client: isNamed ? client : 'scheduler' });
    return null;
  },
  replicate: (request, context) => replicate(request, context),
  rebalance: (request, context) => rebalance(request, context),
  delete_worker_data: (request, context) => deleteWorkerData(request, context),
  add_keys: (request, context) => {
    const worker = String(request['worker']);
    if (!context.cluster.workers.has(worker)) return 'not found';
    context.plugin.enqueue({ op: 'add-keys', worker, keys: context.keys.textsOf(request['keys']) });
    return 'OK';
  },
};

/** The results of Node workers, for any peer of Dask that asks the scheduler for them. */
async function relayed(request: Fields, context: DaskContext): Promise<Fields> {
  const { keys: table, relay } = context;
  const keys = table.textsOf(request['keys'] ?? []);
  const { values, refused } = await relay.fetch(keys);
  const [refusal] = refused.values();
  if (refusal !== undefined) {
    const { who } = request;
    const worker = typeof who === 'string' ? context.workers.get(who) : undefined;
    // A client gets the error; a worker would blame the result, and not the tasks that want it.
    if (worker === undefined) throw refusal;
    relay.refuse(worker, refused);
  }
  const data = new Map([...values].map(([key, value]) => [table.wireOf(key), value]));
  return { status: 'OK', data };
}

// ---- gather -----------------------------------------------------------------------------------

/**
 * Answers by itself, to release the memory of the results when the client has them.
 * @param comm - undefined: a plugin in Python asks, and gets the answer in another way
 */
async function answerGather(
  request: Fields,
  context: DaskContext,
  comm: Comm | undefined,
): Promise<Fields | typeof NO_REPLY> {
  const fetched: unknown[] = [];
  const answer = await gather(request, context, fetched);
  if (comm === undefined) return answer;
  comm.write(answer);
  await comm.drained(0);
  // A connection that broke may still read from the memory.
  if (!comm.isClosed) releaseFrames(fetched, context.clock);
  return NO_REPLY;
}

/** @param fetched - gets the values that came from workers of Dask, to which only the answer refers */
async function gather(request: Fields, context: DaskContext, fetched: unknown[]): Promise<Fields> {
  const { keys: table } = context;
  const wanted = new Set(table.textsOf(request['keys'] ?? []));
  const data = new Map<string, unknown>();
  const failed = new Set<string>();
  while (data.size < wanted.size) {
    const plan = planOf(context, wanted, data, failed);
    if (plan.size === 0) break;
    await fetchForeign(context, plan, data, failed);
    await Promise.all(
      [...plan].map(async ([address, keys]) => {
        const found = await fetch(context, address, keys, request['serializers']);
        for (const [key, value] of found) {
          data.set(key, value);
          fetched.push(value);
        }
        if (found.size < keys.length) failed.add(address);
      }),
    );
  }
  const message = { action: 'gather', count: wanted.size };
  context.plugin.enqueue({ op: 'log-event', topics: ['all'], message });
  const missing = [...wanted].filter((key) => !data.has(key));
  if (missing.length === 0) {
    return {
      status: 'OK',
      data: new Map([...data].map(([key, value]) => [table.wireOf(key), value])),
    };
  }
  const holders = missing.map((key) => [table.wireOf(key), holdersOf(context, key)] as const);
  return { status: 'error', keys: new Map(holders) };
}

/** Takes out of the plan what Node workers hold. @throws YardmasterError `ERR_NOT_PORTABLE` */
async function fetchForeign(
  { relay }: DaskContext,
  plan: Map<string, string[]>,
  into: Map<string, unknown>,
  failed: Set<string>,
): Promise<void> {
  const foreign = [...plan].filter(([address]) => relay.isForeign([address]));
  if (foreign.length === 0) return;
  const { values, refused } = await relay.fetch(foreign.flatMap(([, keys]) => keys));
  for (const error of refused.values()) throw error;
  for (const [key, value] of values) into.set(key, value);
  for (const [address, keys] of foreign) {
    plan.delete(address);
    if (!keys.every((key) => values.has(key))) failed.add(address);
  }
}

function holdersOf({ cluster }: DaskContext, key: string): string[] {
  return (cluster.tasks.get(key)?.whoHas.items ?? []).map(({ address }) => address);
}

/** Which worker to ask for which of the keys that are still missing. */
function planOf(
  context: DaskContext,
  wanted: ReadonlySet<string>,
  data: ReadonlyMap<string, unknown>,
  failed: ReadonlySet<string>,
): Map<string, string[]> {
  const plan = new Map<string, string[]>();
  for (const key of wanted) {
    if (data.has(key)) continue;
    const holder = holdersOf(context, key).find((address) => !failed.has(address));
    if (holder === undefined) continue;
    const keys = plan.get(holder) ?? [];
    plan.set(holder, keys);
    keys.push(key);
  }
  return plan;
}

/** Fetches from one worker what it has. A missing result is reported to the scheduler. */
async function fetch(
  context: DaskContext,
  address: string,
  keys: readonly string[],
  serializers: unknown,
): Promise<ReadonlyMap<string, unknown>> {
  const worker = context.workers.get(address);
  if (worker === undefined) return NOTHING;
  try {
    const found = await getData(context, worker, keys, serializers);
    const lacking = keys.filter((key) => !found.has(key));
    if (lacking.length > 0) {
      context.plugin.enqueue({ op: 'release-worker-data', worker: address, keys: lacking });
    }
    return found;
  } catch (error) {
    context.log.warn({ err: error, worker: address }, 'results could not be fetched');
    return NOTHING;
  }
}

const NOTHING: ReadonlyMap<string, unknown> = new Map();

/** Results of a worker, as they are on the wire. */
async function getData(
  context: DaskContext,
  worker: DaskWorker,
  keys: readonly string[],
  serializers: unknown,
): Promise<Map<string, unknown>> {
  const parameters: Record<string, unknown> = {
    keys: context.keys.wiresOf(keys),
    who: null,
    ...(serializers === undefined || serializers === null ? {} : { serializers }),
    ...(worker.dialect.hasMaxConnections ? { max_connections: false } : {}),
  };
  for (;;) {
    const answer = await context.pool.use(worker.address, (comm) => askForData(comm, parameters));
    if (answer['status'] === 'OK') {
      return new Map(
        entriesOf(answer['data']).map(([key, value]) => [context.keys.textOf(key), value]),
      );
    }
    if (!context.workers.has(worker.address)) throw new Error('the worker left');
    await pauseMs(context, BUSY_PAUSE_MS);
  }
}

async function askForData(comm: Comm, parameters: Fields): Promise<Fields> {
  const answer = fieldsOf(await comm.call('get_data', parameters), 'get_data');
  // The worker counts what is on its way, and waits for this.
  if (answer['status'] === 'OK') comm.write('OK');
  return answer;
}

// ---- scatter ----------------------------------------------------------------------------------

let turn = 0;

async function scatter(request: Fields, context: DaskContext): Promise<unknown> {
  const workers = await runningWorkers(request, context);
  const { client } = request;
  const places = workers.flatMap((worker) => {
    const threads = context.cluster.workers.get(worker.address)?.threadCount ?? 1;
    return Array.from({ length: threads }, () => worker);
  });
  const entries = entriesOf(request['data']);
  const shares = new Map<DaskWorker, [unknown, unknown][]>();
  for (const [key, value] of entries) {
    const worker = places[turn++ % places.length] as DaskWorker;
    const share = shares.get(worker) ?? [];
    shares.set(worker, share);
    share.push([key, value]);
  }
  const items = await Promise.all(
    [...shares].map(([worker, share]) => putData(context, worker, new Map(share))),
  );
  releaseFrames(
    entries.map(([, value]) => value),
    context.clock,
  );
  const name = typeof client === 'string' ? client : 'scheduler';
  context.plugin.enqueue({ op: 'update-data', client: name, items: items.flat() });
  const wanted = request['broadcast'];
  if (wanted === true || (toNumber(wanted) ?? 0) > 0) {
    const n = wanted === true ? workers.length : (toNumber(wanted) ?? 1);
    await copy(
      context,
      entries.map(([key]) => context.keys.textOf(key)),
      n,
      workers,
    );
  }
  const count = entries.length;
  context.plugin.enqueue({
    op: 'log-event',
    topics: [name, 'all'],
    message: { action: 'scatter', client: name, count },
  });
  return entries.map(([key]) => key);
}

async function putData(
  context: DaskContext,
  worker: DaskWorker,
  data: ReadonlyMap<unknown, unknown>,
): Promise<{ key: string; nbytes: number; workers: string[] }[]> {
  const { keys, pool } = context;
  const parameters = { data, ...(worker.dialect.hasUpdateDataReport ? { report: false } : {}) };
  const answer = fieldsOf(
    await pool.call(worker.address, 'update_data', parameters),
    'update_data',
  );
  return entriesOf(answer['nbytes']).map(([key, nbytes]) => ({
    key: keys.textOf(key),
    nbytes: Math.max(0, toNumber(nbytes) ?? 0),
    workers: [worker.address],
  }));
}

async function runningWorkers(request: Fields, context: DaskContext): Promise<DaskWorker[]> {
  const timeoutMs = 1000 * (numberIn(request, 'timeout') ?? 2);
  const deadlineMs = context.clock.nowMs() + timeoutMs;
  for (;;) {
    const asked = workersIn(context, request['workers']) ?? [...context.workers.values()];
    const running = asked.filter(({ address }) => {
      return context.cluster.workers.get(address)?.status === 'running';
    });
    if (running.length > 0) return running;
    if (context.clock.nowMs() >= deadlineMs) {
      throw new PythonException('TimeoutError', 'No valid workers found');
    }
    await pauseMs(context, LOOK_MS);
  }
}

/** Drops replicas of a worker. What has no other replica and is wanted is computed again. */
async function deleteWorkerData(request: Fields, context: DaskContext): Promise<null> {
  const { address } = workerOf(context, request['worker_address']);
  const keys = context.keys.textsOf(request['keys'] ?? []);
  const wires = context.keys.wiresOf(keys);
  const stimulusId = stimulusOf(request);
  await context.pool.call(address, 'free_keys', {
    keys: wires,
    stimulus_id: stimulusId === '' ? 'delete-worker-data' : stimulusId,
  });
  context.plugin.enqueue({ op: 'release-worker-data', worker: address, keys });
  return null;
}

// ---- copies -----------------------------------------------------------------------------------

async function copy(
  context: DaskContext,
  keys: readonly string[],
  n: number,
  workers: readonly DaskWorker[] | undefined,
  more: Fields = {},
): Promise<Fields> {
  const given = {
    keys,
    n,
    ...(workers === undefined ? {} : { workers: workers.map(({ address }) => address) }),
    ...more,
  };
  return fieldsOf(await context.plugin.run('amm.replicate', given), 'amm.replicate');
}

async function replicate(request: Fields, context: DaskContext): Promise<unknown> {
  const keys = context.keys.textsOf(request['keys'] ?? []);
  const named = listIn(request, 'workers');
  const workers = named?.flatMap((which) => workersMeant(context, which));
  const running = (workers ?? [...context.workers.values()]).filter(({ address }) => {
    return context.cluster.workers.get(address)?.status === 'running';
  });
  const n = Math.min(numberIn(request, 'n') ?? running.length, running.length);
  if (n === 0) throw new PythonException('ValueError', 'Can not use replicate to delete data');
  const missing = keys.filter((key) => context.cluster.tasks.get(key)?.whoHas.size === 0);
  if (missing.length > 0) {
    return { status: 'partial-fail', keys: context.keys.wiresOf(missing) };
  }
  const branchingFactor = numberIn(request, 'branching_factor');
  await copy(context, keys, n, workers === undefined ? undefined : running, {
    dropSurplus: request['delete'] !== false,
    branchingFactor,
  });
  return null;
}
