import type {
  ActionTiming,
  ComputeTask,
  ReplicaLocations,
  StealRequest,
  ToWorkerMessage,
  WorkerIdentity,
  WorkerMetrics,
  WorkerReport,
  WorkerStatus,
} from '../../core/api/index.ts';
import {
  amountsOf,
  asList,
  type Dialect,
  entriesOf,
  type Fields,
  isFields,
  numberIn,
  Opaque,
  textIn,
  toNumber,
  type TypeTable,
  versionIn,
} from './wire/codec.ts';
import type { Comm } from './wire/comm.ts';
import type { DaskClient, DaskContext, DaskWorker } from './context.ts';
import type { PendingWants } from './client-bridge.ts';
import type { Relay } from './dask-peer.ts';
import type { Operations } from './operations.ts';
import { failureOf } from './wire/py-errors.ts';
import type { KeyTable } from './wire/key-table.ts';

// What Dask workers report, in the words of the scheduler.

/** Dask's words for states of workers, and what they are here. A worker of `init` gets no tasks yet. */
const STATUS_FROM_DASK: ReadonlyMap<unknown, WorkerStatus> = new Map(
  Object.entries({
    undefined: 'paused',
    created: 'paused',
    init: 'paused',
    starting: 'paused',
    running: 'running',
    paused: 'paused',
    stopping: 'closing',
    stopped: 'closed',
    closing: 'closing',
    closing_gracefully: 'closing-gracefully',
    closed: 'closed',
    failed: 'closed',
  } as const),
);

/** A status of Dask. One that is not known gets no tasks. */
export function statusOf(status: unknown): WorkerStatus {
  return STATUS_FROM_DASK.get(status) ?? 'paused';
}

/** The identity of the worker in `register-worker`. */
export function identityOf(request: Fields): WorkerIdentity {
  const address = textIn(request, 'address');
  const { name, nanny, versions } = request;
  const pid = numberIn(request, 'pid');
  return {
    address,
    serverId: typeof request['server_id'] === 'string' ? request['server_id'] : address,
    name: nameOf(name, address),
    host: hostOf(address),
    threadCount: Math.max(1, numberIn(request, 'nthreads') ?? 1),
    memoryLimitBytes: numberIn(request, 'memory_limit') ?? 0,
    resources: amountsOf(request['resources']),
    language: 'python',
    pid,
    ...(typeof nanny === 'string' ? { nanny } : {}),
    ...(typeof request['local_directory'] === 'string'
      ? { localDirectory: request['local_directory'] }
      : {}),
    versions: { distributed: versionIn(versions) },
  };
}

/** Names are texts here; Dask's local clusters number their workers. */
export function nameOf(name: unknown, address: string): string {
  if (name === undefined || name === null || name === '') return address;
  if (typeof name === 'string') return name;
  return String(toNumber(name) ?? JSON.stringify(name));
}

/** The host of `tcp://host:port`. */
export function hostOf(address: string): string {
  const match = /^[a-z]+:\/\/(?:\[([^\]]+)\]|([^:/]+))/.exec(address);
  return match?.[1] ?? match?.[2] ?? address;
}

/** The parts of Dask's metrics that decisions are based on. */
export function metricsOf(metrics: unknown): WorkerMetrics {
  const fields = isFields(metrics) ? metrics : {};
  const spilled = isFields(fields['spilled_bytes']) ? fields['spilled_bytes'] : {};
  const measured = isFields(fields['bandwidth']) ? fields['bandwidth'] : {};
  const bandwidth = toNumber(measured['total']);
  const transfers = [
    ...meansOf(measured['workers']).map(([from, mean]) => ({ from, bandwidth: mean })),
    ...meansOf(measured['types']).map(([type, mean]) => ({ type, bandwidth: mean })),
  ];
  const cpuPercent = toNumber(fields['cpu']);
  const loopS = toNumber(fields['event_loop_interval']);
  return {
    memoryBytes: amount(fields['memory']),
    spilledMemoryBytes: amount(spilled['memory']),
    spilledDiskBytes: amount(spilled['disk']),
    managedBytes: amount(fields['managed_bytes']),
    ...(isAmount(bandwidth) ? { bandwidth } : {}),
    ...(transfers.length > 0 ? { transfers } : {}),
    ...trafficOf(fields['host_net_io'], fields['host_disk_io']),
    ...(isAmount(cpuPercent) ? { cpuPercent } : {}),
    // The interval between calls that are to come every 20 ms.
    ...(isAmount(loopS) ? { loopDelayMs: Math.max(0, 1000 * loopS - 20) } : {}),
  };
}

/** Of the machine; nothing when the worker does not measure it. */
function trafficOf(network: unknown, disk: unknown): Pick<WorkerMetrics, 'traffic'> {
  if (!isFields(network)) return {};
  const { read_bps: diskRead, write_bps: diskWritten } = isFields(disk) ? disk : {};
  return {
    traffic: {
      ...{ received: amount(network['read_bps']), sent: amount(network['write_bps']) },
      ...{ diskRead: amount(diskRead), diskWritten: amount(diskWritten) },
    },
  };
}

/** Of sums and counts of measurements, by what was measured. */
function meansOf(sums: unknown): [of: string, mean: number][] {
  return (isFields(sums) ? Object.entries(sums) : []).flatMap(([of, pair]) => {
    const [sum, count] = (asList(pair) ?? []).map(toNumber);
    const mean = (sum ?? NaN) / (count ?? NaN);
    return of !== '' && isAmount(mean) ? [[of, mean] as [string, number]] : [];
  });
}

function amount(value: unknown): number {
  const number = toNumber(value);
  return isAmount(number) ? number : 0;
}

function isAmount(value: number | undefined): value is number {
  return value !== undefined && Number.isFinite(value) && value >= 0;
}

/** The heartbeat of a worker, as a report. */
export function heartbeatOf(request: Fields, keys: KeyTable): WorkerReport {
  const resources = amountsOf(request['resources']);
  return {
    op: 'heartbeat-worker',
    stimulusId: 'heartbeat',
    metrics: metricsOf(request['metrics']),
    executing: entriesOf(request['executing']).map(
      ([key, seconds]) => [keys.textOf(key), Math.max(0, toNumber(seconds) ?? 0)] as const,
    ),
    workerNowMs: 1000 * (numberIn(request, 'now') ?? 0),
    ...(Object.keys(resources).length === 0 ? {} : { resources }),
  };
}

/** The measured parts of a task. */
function timingsOf(startstops: unknown): ActionTiming[] {
  const timings: ActionTiming[] = [];
  for (const entry of asList(startstops) ?? []) {
    // Before 2021 they were tuples; since then, maps.
    const [action, start, stop] = isFields(entry)
      ? [entry['action'], entry['start'], entry['stop']]
      : (asList(entry) ?? []);
    const startS = toNumber(start);
    const stopS = toNumber(stop);
    if (typeof action === 'string' && startS !== undefined && stopS !== undefined) {
      timings.push({ action, startS, stopS });
    }
  }
  return timings;
}

export function taskFinished(
  message: Fields,
  key: string,
  runId: number,
): Extract<WorkerReport, { op: 'task-finished' }> {
  const { metadata, typename } = message;
  const nbytes = numberIn(message, 'nbytes') ?? -1;
  const hasMetadata = isFields(metadata) && Object.keys(metadata).length > 0;
  return {
    op: 'task-finished',
    stimulusId: stimulusOf(message),
    key,
    runId,
    ...(nbytes < 0 ? {} : { nbytes }),
    type: typeof typename === 'string' ? typename : 'unknown',
    timings: timingsOf(message['startstops']),
    ...(hasMetadata ? { metadata } : {}),
  };
}

export function taskErred(
  message: Fields,
  key: string,
  runId: number,
): Extract<WorkerReport, { op: 'task-erred' }> {
  return {
    op: 'task-erred',
    stimulusId: stimulusOf(message),
    key,
    runId,
    failure: failureOf(message),
    timings: timingsOf(message['startstops']),
  };
}

/** The stimulus that the worker named, so that its consequences can be found on both sides. */
export function stimulusOf(message: Fields): string {
  const { stimulus_id: id } = message;
  return typeof id === 'string' ? id : '';
}

/** Reports that need only a translation. Undefined for all other messages. */
export function simpleReport(message: Fields, keys: KeyTable): WorkerReport | undefined {
  const stimulusId = stimulusOf(message);
  switch (message['op']) {
    case 'add-keys':
      return { op: 'add-keys', keys: keys.textsOf(message['keys']), stimulusId };
    case 'request-refresh-who-has':
      return { op: 'request-refresh-who-has', keys: keys.textsOf(message['keys']), stimulusId };
    case 'release-worker-data':
      return { op: 'release-worker-data', keys: [keys.textOf(message['key'])], stimulusId };
    case 'reschedule':
      return { op: 'reschedule', key: keys.textOf(message['key']), stimulusId };
    case 'worker-status-change':
      return { op: 'worker-status-change', status: statusOf(message['status']), stimulusId };
    case 'keep-alive':
      return { op: 'keep-alive', stimulusId };
    default:
      return undefined;
  }
}

// Translation of the messages from the scheduler to a Dask worker, in the form of the worker's
// release.

/** The sources at which peers of Dask find what workers hold. */
type Sources = Pick<Relay, 'sourcesOf'>;

/** Words for states of workers in which Dask differs. */
const STATUS_TO_DASK: Readonly<Record<string, string>> = {
  'closing-gracefully': 'closing_gracefully',
};

/** Everything but what the bridge has to remember: `steal-request`, and tasks that are not Python's. */
export function toWorker(
  message: Exclude<ToWorkerMessage, ComputeTask | StealRequest>,
  dialect: Dialect,
  keys: KeyTable,
  relay: Sources,
): Fields | undefined {
  switch (message.op) {
    case 'free-keys':
    case 'remove-replicas':
      return {
        op: message.op,
        keys: keys.wiresOf(message.keys),
        stimulus_id: message.stimulusId,
      };
    case 'acquire-replicas':
      return {
        op: 'acquire-replicas',
        ...locations(message.replicas, keys, relay),
        stimulus_id: message.stimulusId,
      };
    case 'refresh-who-has':
      return {
        op: 'refresh-who-has',
        who_has: locations(message.replicas, keys, relay).who_has,
        stimulus_id: message.stimulusId,
      };
    case 'worker-status-change':
      return {
        op: 'worker-status-change',
        status: STATUS_TO_DASK[message.status] ?? message.status,
        stimulus_id: message.stimulusId,
      };
    case 'remove-worker':
      if (!dialect.hasRemoveWorker) return undefined;
      return { op: 'remove-worker', worker: message.worker, stimulus_id: message.stimulusId };
    case 'close':
      return { op: 'close', reason: message.reason };
    case 'set-priority':
    case 'extend-time-limits':
    case 'resume-run':
      return undefined; // Dask's workers know nothing of the kind.
  }
}

/** True when a Dask worker can compute it: a value of Python, or a function with its arguments. */
export function isPythonTask(runSpec: unknown): boolean {
  return runSpec instanceof Opaque || (isFields(runSpec) && 'function' in runSpec);
}

/** @param span - of the task's group, where the release has such; None is allowed */
export function computeTask(
  message: Omit<ComputeTask, 'runSpec'> & { readonly runSpec: unknown },
  dialect: Dialect,
  keys: KeyTable,
  relay: Sources,
): Fields {
  const { runSpec, dependencies } = message;
  const { who_has, nbytes } = locations(dependencies, keys, relay);
  const fields: Record<string, unknown> = {
    op: 'compute-task',
    key: keys.wireOf(message.key),
    // A Dask worker runs the newest of equal tasks first, so the message says which submission is
    // older.
    priority: [...message.priority, message.arrival ?? 0],
    stimulus_id: message.stimulusId,
    who_has,
    nbytes,
    run_spec: null,
    resource_restrictions: message.resources ?? NOTHING,
    actor: message.actor ?? false,
    annotations: message.annotations ?? NOTHING,
  };
  if (dialect.hasRunIds) fields['run_id'] = message.runId;
  if (dialect.hasDuration) fields['duration'] = message.durationS;
  if (dialect.hasSpanIds) fields['span_id'] = null;
  if (dialect.hasOnlyRunSpecs) fields['run_spec'] = runSpec;
  else if (runSpec instanceof Opaque) {
    fields['run_spec'] = runSpec;
    fields['function'] = null;
    fields['args'] = null;
    fields['kwargs'] = null;
  } else {
    const { function: called, args, kwargs } = runSpec as Fields;
    fields['function'] = called;
    fields['args'] = args ?? null;
    fields['kwargs'] = kwargs ?? null;
  }
  return fields;
}

const NOTHING = Object.freeze({});

/** Keys may be tuples and must not become names of fields, so these are maps. */
function locations(
  { keys, nbytes, whoHas }: ReplicaLocations,
  table: KeyTable,
  relay: Sources,
): { readonly who_has: unknown; readonly nbytes: unknown } {
  if (keys.length === 0) return { who_has: NOTHING, nbytes: NOTHING };
  const holders = new Map<unknown, readonly string[]>();
  const sizes = new Map<unknown, number>();
  for (let index = 0; index < keys.length; index++) {
    const key = table.wireOf(keys[index] as string);
    holders.set(key, relay.sourcesOf(whoHas[index] ?? []));
    sizes.set(key, nbytes[index] ?? -1);
  }
  return { who_has: holders, nbytes: sizes };
}

/** A peer of Dask whose stream can be held back. */
interface BridgedPeer {
  /** Stops, or starts again, the reading of its stream. */
  hold(isHeld: boolean): void;
}

/** A worker of Dask as the front keeps it. */
export type BridgedWorker = DaskWorker & BridgedPeer;

/** A client of Dask as the front keeps it. */
export interface BridgedClient extends DaskClient, BridgedPeer {
  /** It wants these keys, after all that it has said before. */
  want(keys: readonly string[]): void;
  /**
   * Resolves when no graph of this client is being unpacked or submitted, and no message waits behind
   * one.
   */
  settled(): Promise<void>;
}

/** The services of the scheduler that the connections of Dask's peers use. */
export interface BridgeHost extends DaskContext {
  /** Types of results by key. */
  readonly types: TypeTable;
  /** The operations that peers can ask for, and send on their streams. */
  readonly operations: Operations;
  /** The scheduler says goodbye: failures of connections are expected. */
  readonly isClosing: boolean;
  addWorker(worker: BridgedWorker): void;
  removeWorker(worker: BridgedWorker): void;
  addClient(client: BridgedClient): void;
  removeClient(client: BridgedClient): void;
  /** Pickled plugins for a worker that registers, by name. */
  workerPluginsFor(worker: DaskWorker): ReadonlyMap<string, unknown>;
  /** Seconds between the heartbeats of a client. */
  clientHeartbeatIntervalS(): number;
  /** A run ended on a worker of Dask. */
  taskDone(message: Fields, key: string, worker: DaskWorker, runId: number): void;
  graphSubmitted(client: DaskClient, keys: readonly string[], message: Fields): void;
  /** Keys that clients want and that have no task yet. */
  readonly pendingWants: PendingWants;
  /** Has a nanny end and replace the process of its worker. */
  killThroughNanny(nanny: string, reason: string): void;
  /** Answers with an error that the peer raises, and ends the connection. */
  fail(comm: Comm, error: unknown): void;
}
