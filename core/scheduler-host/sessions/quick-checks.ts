/**
 * Checks by hand of the messages of which there is one for each task, in a fraction of the time that their
 * schemas take. What they do not know for sure the schema decides, and says what is wrong.
 *
 * Loops are functions of their own that end with them: a schema's check goes on after its loop, in code
 * that V8 had no reason to compile with a loop of fifty thousand tasks, and leaves it each time since.
 */
import type { WireMessage } from '../../api/transport.ts';

/** Whether a message surely is a `task-finished` of the right form. */
export function isTaskFinished(message: WireMessage): boolean {
  const { op, key, runId, nbytes, type, timings, metadata, stimulusId } = message;
  return (
    op === 'task-finished' &&
    isKey(key) &&
    Number.isInteger(runId) &&
    isAmount(nbytes) &&
    typeof type === 'string' &&
    Array.isArray(timings) &&
    timings.every(isTiming) &&
    metadata === undefined &&
    isTextOrNone(stimulusId)
  );
}

/** Whether a message surely is a `release-worker-data` of the right form. */
export function isReleaseWorkerData({ op, keys, stimulusId }: WireMessage): boolean {
  return op === 'release-worker-data' && areKeys(keys) && isTextOrNone(stimulusId);
}

/** Whether a message surely is a `client-releases-keys` of the right form. */
export function isClientReleasesKeys({ op, keys, stimulusId }: WireMessage): boolean {
  return op === 'client-releases-keys' && areKeys(keys) && isTextOrNone(stimulusId);
}

/** Whether a message surely is an `update-graph` of the right form, with tasks without options. */
export function isPlainGraph(message: WireMessage): boolean {
  const { op, tasks, keys, fifoTimeoutMs, submittingTask, parts, stimulusId } = message;
  return (
    op === 'update-graph' &&
    areKeys(keys) &&
    (fifoTimeoutMs === undefined || isAmount(fifoTimeoutMs)) &&
    (submittingTask === undefined || isKey(submittingTask)) &&
    parts === undefined &&
    isTextOrNone(stimulusId) &&
    arePlainTasks(tasks)
  );
}

function arePlainTasks(tasks: unknown): boolean {
  if (!Array.isArray(tasks)) return false;
  for (let index = 0; index < tasks.length; index++) if (!isPlainTask(tasks[index])) return false;
  return true;
}

function isPlainTask(task: unknown): boolean {
  if (typeof task !== 'object' || task === null || Array.isArray(task)) return false;
  const { key, dependencies, rank, userPriority, retries, workers, hosts } = task as WireMessage;
  if (!isKey(key) || !areKeys(dependencies)) return false;
  if (rank !== undefined || userPriority !== undefined || retries !== undefined) return false;
  if (workers !== undefined || hosts !== undefined) return false;
  const { allowOtherWorkers, resources, actor, dataProducer, annotations, group, prefix } =
    task as WireMessage;
  if (allowOtherWorkers !== undefined || resources !== undefined) return false;
  if (actor !== undefined || dataProducer !== undefined) return false;
  if (annotations !== undefined) return false;
  return group === undefined && prefix === undefined;
}

function areKeys(keys: unknown): boolean {
  if (!Array.isArray(keys)) return false;
  for (let index = 0; index < keys.length; index++) if (!isKey(keys[index])) return false;
  return true;
}

function isKey(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

function isTextOrNone(value: unknown): boolean {
  return value === undefined || typeof value === 'string';
}

function isTiming(item: unknown): boolean {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return false;
  const { action, startS, stopS } = item as Readonly<Record<string, unknown>>;
  return typeof action === 'string' && Number.isFinite(startS) && Number.isFinite(stopS);
}

function isAmount(value: unknown): boolean {
  return Number.isFinite(value) && (value as number) >= 0;
}
