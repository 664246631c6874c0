import type { TaskView } from '../../core/api/index.ts';

/** Whether a task is held back until a worker has an open slot. Those with a limit are queued for that instead. */
export function waitsForSlot({ state, limit }: TaskView): boolean {
  return state === 'queued' && limit === undefined;
}
