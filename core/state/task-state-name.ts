/** The states of a task as the scheduler sees it. */
export type TaskStateName =
  'released' | 'waiting' | 'no-worker' | 'queued' | 'processing' | 'memory' | 'erred' | 'forgotten';

/** All states, in the order in which a task usually meets them. */
export const TASK_STATE_NAMES = [
  'released',
  'waiting',
  'no-worker',
  'queued',
  'processing',
  'memory',
  'erred',
  'forgotten',
] as const satisfies readonly TaskStateName[];

/** One number for each state. */
export type StateCounts = Record<TaskStateName, number>;

export function zeroStateCounts(): StateCounts {
  return {
    released: 0,
    waiting: 0,
    'no-worker': 0,
    queued: 0,
    processing: 0,
    memory: 0,
    erred: 0,
    forgotten: 0,
  };
}

/** In play: the task is on its way to a result and keeps the results of its dependencies alive. */
export function isInPlay(state: TaskStateName): boolean {
  return (
    state === 'waiting' || state === 'processing' || state === 'queued' || state === 'no-worker'
  );
}
