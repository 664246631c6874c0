/** What Dask workers report, in the words of the scheduler. */
import type {
  ActionTiming,
  WorkerIdentity,
  WorkerMetrics,
  WorkerReport,
  WorkerStatus,
} from '../../../core/api/index.ts';
import { toNumber } from '../codec/index.ts';
import type { Fields } from '../context.ts';
import { versionIn } from '../codec/dialect.ts';
import type { KeyTable } from './key-table.ts';
import { failureOf } from '../rpc/py-failure.ts';
import { amountsOf, asList, entriesOf, isFields, numberIn, textIn } from '../codec/values.ts';

/** Dask's words for states of workers, and what they are here. A worker of `init` gets no tasks yet. */
const STATUS_FROM_DASK: Readonly<Record<string, WorkerStatus>> = {
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
};

/** A status of Dask. One that is not known gets no tasks. */
export function statusOf(status: unknown): WorkerStatus {
  return STATUS_FROM_DASK[String(status)] ?? 'paused';
}

/** What `register-worker` says of the worker. */
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
    ...(pid === undefined ? {} : { pid }),
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
  const { total } = isFields(fields['bandwidth']) ? fields['bandwidth'] : { total: undefined };
  const bandwidth = toNumber(total);
  const cpuPercent = toNumber(fields['cpu']);
  return {
    memoryBytes: amount(fields['memory']),
    spilledMemoryBytes: amount(spilled['memory']),
    spilledDiskBytes: amount(spilled['disk']),
    managedBytes: amount(fields['managed_bytes']),
    ...(isAmount(bandwidth) ? { bandwidth } : {}),
    ...(isAmount(cpuPercent) ? { cpuPercent } : {}),
  };
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

/** A task was computed. */
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

/** A task failed. */
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
