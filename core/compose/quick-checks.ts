import type { WireMessage } from '../api/transport.ts';

/**
 * Whether a message surely is a `task-finished` of the right form, of which there is one for each task;
 * in a fraction of the time that the schema takes. What it does not know for sure the schema decides, and
 * says what is wrong.
 */
export function isTaskFinished(message: WireMessage): boolean {
  const { op, key, runId, nbytes, type, timings, metadata, stimulusId } = message;
  return (
    op === 'task-finished' &&
    typeof key === 'string' &&
    key !== '' &&
    Number.isInteger(runId) &&
    isAmount(nbytes) &&
    typeof type === 'string' &&
    Array.isArray(timings) &&
    timings.every(isTiming) &&
    metadata === undefined &&
    (stimulusId === undefined || typeof stimulusId === 'string')
  );
}

function isTiming(item: unknown): boolean {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return false;
  const { action, startS, stopS } = item as Readonly<Record<string, unknown>>;
  return typeof action === 'string' && Number.isFinite(startS) && Number.isFinite(stopS);
}

function isAmount(value: unknown): boolean {
  return Number.isFinite(value) && (value as number) >= 0;
}
