/**
 * Translation of the messages from the scheduler to a Dask worker, in the form of the worker's
 * release.
 */
import type {
  ComputeTask,
  ReplicaLocations,
  SetTaskPriorities,
  StealRequest,
  ToWorkerMessage,
} from '../../../core/api/index.ts';
import type { Relay } from '../interop/relay.ts';
import { Opaque } from '../codec/index.ts';
import type { Fields } from '../context.ts';
import type { Dialect } from '../codec/dialect.ts';
import type { KeyTable } from './key-table.ts';
import { isFields } from '../codec/values.ts';

/** Where peers of Dask find what workers hold. */
type Sources = Pick<Relay, 'sourcesOf'>;

/** Words for states of workers in which Dask differs. */
const STATUS_TO_DASK: Readonly<Record<string, string>> = {
  'closing-gracefully': 'closing_gracefully',
};

/** Everything but what the bridge has to remember: `steal-request`, and tasks that are not Python's. */
export function toWorker(
  message: Exclude<ToWorkerMessage, ComputeTask | StealRequest | SetTaskPriorities>,
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
  }
}

/** Whether a Dask worker can compute it: a value of Python, or a function with its arguments. */
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
